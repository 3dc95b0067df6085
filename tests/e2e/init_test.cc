// motley init: its files work without changes, and it overwrites nothing.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/motley_command.h"

namespace motley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Init : public testing::Test {
 protected:
  // motley init in the test's folder, with these answers on standard input.
  [[nodiscard]] Outcome init(std::vector<std::string> words,
                             const std::string& answers = "") const {
    words.insert(words.begin(), "init");
    words.insert(words.end(), {"--cluster", path("cluster.toml"), "--config", path("train.toml"),
                               "--run", path("run")});
    const std::string input = folder_.write("answers", answers);
    const std::string program = (stage_program().parent_path() / "motley").string();
    words.insert(words.begin(),
                 {"-c", "input=$1; shift; exec \"$@\" < \"$input\"", "sh", input, program});
    return motley(words, "/bin/sh");
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  static std::string own_name() {
    std::array<char, 256> name{};
    EXPECT_EQ(::gethostname(name.data(), name.size() - 1), 0);
    return name.data();
  }

  TemporaryFolder folder_;
};

TEST_F(Init, WritesFilesThatTrainAsTheyAre) {
  const Outcome written = init({});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.out, AllOf(HasSubstr("train.toml"), HasSubstr("next\n")));
  const Outcome trained = motley({"train", path("train.toml"), "--cluster", path("cluster.toml"),
                                  "--set", "train.steps=2", "--set", "train.warmup_steps=1",
                                  "--set", "train.micro_batch=8", "--set", "model.width=32"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_TRUE(std::filesystem::exists(path("run") + "/checkpoints/step-000002"));
}

TEST_F(Init, NamesTheMachinesThatAreGiven) {
  // 192.0.2.0/24 is reserved for documentation: no machine is there.
  const Outcome written = init({"--machine", "desk=localhost", "--machine",
                                "oldbox=anna@192.0.2.11", "--machine", "box=192.0.2.12"});
  if (written.status == 4) GTEST_SKIP() << "this machine has no network: " << written.err;
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("desk here, oldbox by `ssh anna@192.0.2.11`, "
                                     "box by `ssh 192.0.2.12`"));
  const std::string cluster = read_text(path("cluster.toml"));
  EXPECT_THAT(cluster,
              AllOf(HasSubstr("ssh = \"anna@192.0.2.11\""), Not(HasSubstr("ssh = \"192.0.2.12\"")),
                    Not(HasSubstr("shell")), Not(HasSubstr("address = \"127."))));
}

TEST_F(Init, TakesAnswers) {
  const Outcome written =
      init({"--ask"}, "desk top\nanna@192.0.2.11\noldbox\n\nno/such.txt\n" +
                          folder_.write("text.txt", "some text") + "\n/shared/mine\n");
  if (written.status == 4) GTEST_SKIP() << "this machine has no network: " << written.err;
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.out,
              AllOf(HasSubstr(own_name() + "]: "), HasSubstr("no/such.txt does not exist.")));
  EXPECT_THAT(read_text(path("cluster.toml")),
              AllOf(HasSubstr("name = \"desk-top\""), HasSubstr("name = \"oldbox\""),
                    HasSubstr("ssh = \"anna@192.0.2.11\"")));
  EXPECT_THAT(read_text(path("train.toml")),
              AllOf(HasSubstr("kind = \"text\""), HasSubstr(path("text.txt")),
                    HasSubstr("dir = \"/shared/mine\"")));
}

// One invalid answer does not lose the earlier ones.
TEST_F(Init, AsksAgainForAMachineThatIsNone) {
  const Outcome written = init({"--ask"},
                               "desk\n192.0.2.11\noldbox\n192.0.2.12\nold box\n192.0.2.12\n"
                               "oldbox\nno host\nattic\nno-such-host.invalid\nattic\n"
                               "192.0.2.11\nattic\n192.0.2.12\nattic\n\n\n\n");
  if (written.status == 4) GTEST_SKIP() << "this machine has no network: " << written.err;
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.out,
              AllOf(HasSubstr("'old box' at '192.0.2.12' is not a machine"),
                    HasSubstr("A machine named oldbox exists already"),
                    HasSubstr("no-such-host.invalid"), HasSubstr("oldbox is at 192.0.2.11 already"),
                    HasSubstr("'attic' at 'no host' is not a machine")));
  EXPECT_THAT(read_text(path("cluster.toml")),
              AllOf(HasSubstr("name = \"desk\""), HasSubstr("name = \"oldbox\""),
                    HasSubstr("name = \"attic\"")));
}

// Ending the dialog writes no files.
TEST_F(Init, WritesNothingWhereTheAnswersEnd) {
  const Outcome ended = init({"--ask"}, "desk\n");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("ended before all questions"), HasSubstr("nothing was written")));
  EXPECT_FALSE(std::filesystem::exists(path("cluster.toml")));
  EXPECT_FALSE(std::filesystem::exists(path("train.toml")));
}

TEST_F(Init, WritesOverNothing) {
  folder_.write("train.toml", "mine");
  const Outcome refused = init({});
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, HasSubstr("train.toml already exists"));
  EXPECT_EQ(read_text(path("train.toml")), "mine");
  EXPECT_FALSE(std::filesystem::exists(path("cluster.toml"))) << "half of the work";
}

// The nodes are addresses that are reserved for documentation, so that they need no name service.
TEST_F(Init, TakesTheMachinesOfASchedulersJob) {
  const std::string program = (stage_program().parent_path() / "motley").string();
  const auto from_slurm = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {
        "-c",
        "SLURM_JOB_ID=17 SLURM_JOB_NODELIST='192.0.2.[11-12]' exec \"$@\"",
        "sh",
        program,
        "init",
        "--from",
        "slurm",
        "--cluster",
        path("cluster.toml")};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words, "/bin/sh");
  };
  const Outcome written = from_slurm({});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(read_text(path("cluster.toml")),
              AllOf(HasSubstr("name = \"192.0.2.11\""), HasSubstr("address = \"192.0.2.12\""),
                    HasSubstr("shell = [\"srun\", \"--jobid=17\""), Not(HasSubstr("ssh =")),
                    Not(HasSubstr(own_name()))));
  EXPECT_FALSE(std::filesystem::exists("train.toml"));
  EXPECT_EQ(from_slurm({"--machine", "box=192.0.2.1"}).status, 2);

  const std::string hosts = folder_.write("hosts", "192.0.2.11 slots=4\n192.0.2.12 slots=4\n");
  const Outcome of_file = motley(
      {"init", "--from", hosts, "--cluster", path("hosts.toml"), "--config", path("train.toml")});
  ASSERT_EQ(of_file.status, 0) << of_file.err;
  EXPECT_THAT(of_file.out, HasSubstr("192.0.2.11 by `ssh 192.0.2.11`"));
  EXPECT_TRUE(std::filesystem::exists(path("train.toml")));
}

TEST_F(Init, RefusesWhatNamesNoMachine) {
  for (const char* wrong : {"box", "=10.0.0.1", "box=", "b x=10.0.0.1", "box=-oProxyCommand=x",
                            "box=a b", "box=\"quoted\""}) {
    const Outcome outcome = init({"--machine", wrong});
    EXPECT_EQ(outcome.status, 2) << wrong << outcome.out << outcome.err;
  }
  const Outcome unknown = init({"--machine", "box=no-such-host.invalid"});
  EXPECT_EQ(unknown.status, 3);
  EXPECT_THAT(unknown.err, HasSubstr("no-such-host.invalid"));
  EXPECT_EQ(init({"--machine", "a=192.0.2.1", "--machine", "b=anna@192.0.2.1"}).status, 2);
  EXPECT_EQ(init({"--data", path("none")}).status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("cluster.toml")));
}

}  // namespace
}  // namespace motley::test
