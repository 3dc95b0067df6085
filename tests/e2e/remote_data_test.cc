// Runs whose data only the remote machines see, in run folders of their own: epochs, early
// stopping, the best checkpoint.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/motley_command.h"
#include "e2e/overfitting_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

// The machines "box" and "lap" are this computer too, but their processes have another working
// folder, to which data.path refers.
class RemoteData : public testing::Test {
 protected:
  RemoteData() {
    for (const char* name : {"box", "lap"}) fs::create_directories(files_of(name));
    put_data("box", random_letters());
    put_data("lap", random_letters());
    config_ = folder_.write("job.toml", kOverfitting);
    std::string cluster = "[network]\ntrusted = true\n";
    for (const char* name : {"box", "lap"}) {
      cluster += fmt::format(
          "[[machine]]\nname = \"{0}\"\naddress = \"127.0.0.1\"\nthreads = 1\n"
          "runs_dir = \"{1}\"\n"
          "shell = [\"sh\", \"-c\", \"cd {2} && exec \\\"$0\\\" \\\"$@\\\"\"]\n",
          name, (folder_ / name).string(), files_of(name).string());
    }
    cluster_ = folder_.write("cluster.toml", cluster);
    with_this_ = folder_.write("with-this.toml",
                               cluster + "[[machine]]\nname = \"desk\"\naddress = \"127.0.0.1\"\n");
  }

  [[nodiscard]] fs::path files_of(const std::string& machine) const {
    return folder_ / ("files-of-" + machine);
  }

  void put_data(const std::string& machine, const std::string& text) const {
    folder_.write("files-of-" + machine + "/data.txt", text);
  }

  [[nodiscard]] std::string run_dir() const { return (folder_ / "run").string(); }

  [[nodiscard]] Outcome train(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "launch", config_,      "--cluster", cluster_,
        "--run",  run_dir(),    "--pin",     "always box",
        "--pin",  "always lap", "--set",     "data.path=/proc/self/cwd/data.txt"};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words);
  }

  [[nodiscard]] Json report() const { return Json::parse(read_text(folder_ / "run/report.json")); }

  TemporaryFolder folder_;
  std::string config_;
  std::string cluster_;
  std::string with_this_;  // and the launcher's machine
};

TEST_F(RemoteData, IsCountedByItsMachinesForEpochs) {
  // 600 bytes, 30 % held out, windows of 8 bytes and the next one.
  const Outcome ended = train({"--set", "train.epochs=2", "--set", "train.eval_every=0", "--set",
                               "train.early_stopping=0", "--set", "checkpoint.keep_best=false"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("2 epochs of 51 samples = 13 steps"));
  EXPECT_EQ(report().at("last_step"), 13);
}

TEST_F(RemoteData, OnNoMachineCannotBeCounted) {
  for (const char* name : {"box", "lap"}) fs::remove(files_of(name) / "data.txt");
  const Outcome refused = train({"--set", "train.epochs=2"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the number of steps of train.epochs is not known"),
                                 HasSubstr("warning: box: "), HasSubstr("data.txt")));
}

TEST_F(RemoteData, ThatDiffersIsRefused) {
  put_data("lap", random_letters() + "more");
  const Outcome refused = train({"--set", "train.epochs=2"});
  EXPECT_EQ(refused.status, 8) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("does not have the data of the other machines"));
}

// Only the files of the other machine remain of the best checkpoint.
TEST_F(RemoteData, StopsARunEarlyWhoseBestCheckpointOutlivesAMachine) {
  const Outcome ended = train({});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("stopped early: 3 evaluations in a row without a lower"));
  const auto best = report().at("best").at("step").get<std::int64_t>();
  EXPECT_EQ(report().at("last_step"), best + 15);
  EXPECT_EQ(report().at("evaluation").at("step"), best + 15);
  fs::remove_all(folder_ / "lap");
  const std::string checkpoint = run_dir() + "/checkpoints/best";
  const Outcome gathered = motley({"ckpt", "gather", checkpoint, "--cluster", with_this_});
  ASSERT_EQ(gathered.status, 0) << gathered.err;
  EXPECT_THAT(gathered.out, HasSubstr(fmt::format("step {}, ", best)));
  const Outcome whole = motley({"ckpt", "verify", checkpoint});
  EXPECT_EQ(whole.status, 0) << whole.err;
}

}  // namespace
}  // namespace motley::test
