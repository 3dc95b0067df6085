// A run on machines that join by ticket: this computer three times, with a cache folder each. They
// share no run folder, have no shell entry, and get the training data through their connections.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string entry(const std::string& name) {
  return fmt::format("[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\nthreads = 1\n", name);
}

class Join : public testing::Test {
 protected:
  Join() {
    namespace fs = std::filesystem;
    const fs::path folder = job_.folder() / "texts";
    fs::create_directories(folder / ".private");
    std::ofstream(folder / ".private" / "key") << "private";
    for (const char* name : {"a.txt", "b.txt"}) {
      std::ofstream file(folder / name);
      for (int i = 0; i < 2000; ++i) file << "line " << i << " of " << name << '\n';
    }
    data_ = folder;
  }

  // Settings with the same rounding for any assignment of layers, on three machines.
  [[nodiscard]] std::vector<std::string> settings() const {
    std::vector<std::string> words =
        SmallJob::measured_with({"profile.seconds=1"}, entry("desk") + entry("box") + entry("lap"));
    for (const std::string& setting :
         {std::string("data.kind=text"), "data.path=" + data_, std::string("train.steps=30"),
          std::string("checkpoint.every=10"), std::string("parallel.replicas=false"),
          std::string("compression.activations=none"), std::string("checkpoint.copies=0")}) {
      words.insert(words.end(), {"--set", setting});
    }
    for (const char* machine : {"desk", "box", "lap"}) {
      words.insert(words.end(), {"--pin", fmt::format("always {}", machine)});
    }
    words.insert(words.end(), {"--pin", "layer 0 on box"});  // it reads the data there
    return words;
  }

  // The hash of the parameters after the same run, started locally.
  [[nodiscard]] std::string hash_of_local_run() const {
    std::vector<std::string> words = settings();
    words.insert(words.end(),
                 {"--cluster",
                  job_.folder().write("all.toml", entry("desk") + entry("box") + entry("lap"))});
    const Outcome outcome = job_.train("local", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return job_.parameter_hash("local", 30);
  }

  // motley launch --invite of `places` machines, into the run folder "run".
  std::unique_ptr<RunningMotley> launch(int places, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = job_.train_words("run", settings());
    words.front() = "launch";
    words.insert(words.end(),
                 {"--cluster", job_.folder().write("desk.toml", "[[machine]]\nname = \"desk\"\n"),
                  "--invite", fmt::format("{}", places), "--listen", "127.0.0.1:0"});
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<RunningMotley>(words);
  }

  // The printed ticket.
  static std::string ticket_of(const RunningMotley& head) {
    std::string text;
    EXPECT_TRUE(eventually([&] {
      const std::string printed = head.printed();
      const std::size_t begin = printed.find("motley1:");
      const std::size_t end = printed.find('\n', begin);
      if (begin == std::string::npos || end == std::string::npos) return false;
      text = printed.substr(begin, end - begin);
      return true;
    })) << head.reported();
    return text;
  }

  // Waits for the first step of "run".
  [[nodiscard]] testing::AssertionResult has_trained(const RunningMotley& head) const {
    const std::string metrics = job_.run_dir("run") + "/metrics.jsonl";
    const bool has = eventually([&] {
      return std::filesystem::exists(metrics) && read_text(metrics).find('\n') != std::string::npos;
    });
    return has ? testing::AssertionSuccess() : testing::AssertionFailure() << head.reported();
  }

  [[nodiscard]] std::unique_ptr<RunningMotley> join(const std::string& name,
                                                    const std::string& ticket) const {
    return std::make_unique<RunningMotley>(std::vector<std::string>{"join", ticket, "--name", name},
                                           "", job_.folder() / name);
  }

  SmallJob job_;
  std::string data_;
};

TEST_F(Join, TrainsToTheSameParametersAsALocalRun) {
  const std::string hash = hash_of_local_run();
  const auto head = launch(2);
  const std::string ticket = ticket_of(*head);
  const auto box = join("box", ticket);
  const auto lap = join("lap", job_.folder().write("ticket", ticket + "\n"));
  ASSERT_TRUE(eventually([&] { return head->reported().find("(2 of 2)") != std::string::npos; }));
  const Outcome third = join("third", ticket)->wait();
  EXPECT_EQ(third.status, 5);
  EXPECT_THAT(third.err, HasSubstr("the ticket was for 2 machines, which have joined"));
  const Outcome launched = head->wait();
  ASSERT_EQ(launched.status, 0) << launched.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
  // The parts of the machines that have left are here.
  const Outcome verified = motley({"ckpt", "verify", job_.run_dir("run")});
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_THAT(launched.err, AllOf(HasSubstr("box has joined"), HasSubstr("lap has joined")));
  const Outcome left = box->wait();
  EXPECT_EQ(left.status, 0) << left.err;
  EXPECT_THAT(left.err, AllOf(HasSubstr("joined as box"), HasSubstr("received 0.1 MiB of files"),
                              HasSubstr("the head has ended the run")));
  EXPECT_EQ(lap->wait().status, 0);
  for (const auto& file : std::filesystem::recursive_directory_iterator(job_.folder() / "box")) {
    EXPECT_NE(file.path().filename(), "key");
    if (!file.is_regular_file()) continue;
    EXPECT_THAT(read_text(file.path()), Not(HasSubstr("private"))) << file.path();
  }
  // The secret is the last part of the ticket.
  const std::string secret = ticket.substr(ticket.rfind('/') + 1);
  for (const auto& file : std::filesystem::recursive_directory_iterator(job_.folder().path())) {
    if (!file.is_regular_file() || file.path().filename() == "ticket") continue;
    EXPECT_THAT(read_text(file.path()), Not(HasSubstr(secret))) << file.path();
  }
  EXPECT_EQ(join("late", ticket)->wait().status, 4);
}

// Its layers, their references and its weights are read on the machine that has joined.
TEST_F(Join, TrainsAPackage) {
  const std::string config = job_.folder().write("package.toml", R"(
[model]
kind = "package"
[data]
kind = "synthetic"
[train]
steps = 4
global_batch = 12
micro_batch = 3
[parallel]
replicas = false
[checkpoint]
copies = 0
[run]
threads = 1
restarts = 0
)");
  RunningMotley head({"launch", config, "--run", job_.run_dir("run"), "--cluster",
                      job_.folder().write("desk.toml", "[[machine]]\nname = \"desk\"\n"),
                      "--invite", "1", "--listen", "127.0.0.1:0", "--pin", "always box", "--pin",
                      "always desk", "--set", "profile.seconds=1", "--set",
                      "model.path=" + std::string(MOTLEY_PACKAGES) + "/cnn.motley"});
  const auto box = join("box", ticket_of(head));
  const Outcome launched = head.wait();
  ASSERT_EQ(launched.status, 0) << launched.err;
  const Outcome left = box->wait();
  EXPECT_EQ(left.status, 0) << left.err;
}

TEST_F(Join, OfAMachineThatIsKilledEndsLikeAnyLostMachineAndItMayComeBack) {
  const auto head = launch(2, {"--set", "train.steps=400", "--set", "run.restarts=3"});
  const std::string ticket = ticket_of(*head);
  auto box = join("box", ticket);
  const auto lap = join("lap", ticket);
  ASSERT_TRUE(eventually([&] {
    return std::filesystem::exists(job_.folder() / "run/checkpoints/step-000010");
  })) << head->reported();
  ::kill(box->pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] {
    return head->reported().find("box: the connection was lost") != std::string::npos;
  })) << head->reported();
  const auto again = join("box", ticket);
  ASSERT_TRUE(eventually([&] { return head->reported().find("box is back") != std::string::npos; }))
      << head->reported();
  const Outcome launched = head->wait();
  ASSERT_EQ(launched.status, 0) << launched.err;
  EXPECT_EQ(again->wait().status, 0);
}

TEST_F(Join, OfAMachineThatLeavesByCtrlCEndsWithASavedStep) {
  const auto head = launch(2, {"--set", "train.steps=400", "--set", "checkpoint.every=1000",
                               "--set", "checkpoint.copies=1", "--set", "run.restarts=3"});
  const std::string ticket = ticket_of(*head);
  const auto box = join("box", ticket);
  const auto lap = join("lap", ticket);
  ASSERT_TRUE(has_trained(*head));
  ::kill(box->pid(), SIGINT);
  const Outcome left = box->wait();
  EXPECT_EQ(left.status, 130) << left.err;
  EXPECT_THAT(left.err, HasSubstr("the run saves its current step first"));
  const Outcome launched = head->wait();
  ASSERT_EQ(launched.status, 0) << launched.err;
  EXPECT_THAT(launched.err, AllOf(HasSubstr("box left, after step "), Not(HasSubstr("repeated"))));
  EXPECT_EQ(lap->wait().status, 0);
}

// The parts of the newest checkpoint that only they have go to the machine that stays.
TEST_F(Join, OfMachinesThatAllLeaveHandsOverTheirParts) {
  const std::string hash = hash_of_local_run();
  const auto head = launch(2, {"--set", "checkpoint.every=1000", "--set", "run.restarts=3"});
  const std::string ticket = ticket_of(*head);
  const auto box = join("box", ticket);
  const auto lap = join("lap", ticket);
  ASSERT_TRUE(has_trained(*head));
  ::kill(box->pid(), SIGINT);
  ::kill(lap->pid(), SIGINT);
  EXPECT_EQ(box->wait().status, 130);
  EXPECT_EQ(lap->wait().status, 130);
  const Outcome launched = head->wait();
  ASSERT_EQ(launched.status, 0) << launched.err;
  EXPECT_THAT(launched.err, Not(HasSubstr("repeated")));
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

TEST_F(Join, OfAHeadThatIsStoppedLeavesACompleteCheckpointThere) {
  const auto head = launch(2, {"--set", "train.steps=4000"});
  const std::string ticket = ticket_of(*head);
  const auto box = join("box", ticket);
  const auto lap = join("lap", ticket);
  ASSERT_TRUE(has_trained(*head));
  ::kill(head->pid(), SIGINT);
  EXPECT_EQ(head->wait().status, 130) << head->reported();
  box->wait();
  lap->wait();
  const Outcome verified = motley({"ckpt", "verify", job_.run_dir("run")});
  EXPECT_EQ(verified.status, 0) << verified.err;
}

// The workers save their step, also those on machines that have joined.
TEST_F(Join, OfAHeadThatIsKilledLosesNoStep) {
  auto head = launch(2, {"--set", "train.steps=4000", "--set", "checkpoint.every=4000"});
  std::string ticket = ticket_of(*head);
  auto box = join("box", ticket);
  auto lap = join("lap", ticket);
  ASSERT_TRUE(has_trained(*head));
  ::kill(head->pid(), SIGKILL);
  head->wait();
  const std::string metrics = read_text(job_.run_dir("run") + "/metrics.jsonl");
  const auto recorded = std::ranges::count(metrics, '\n');
  ASSERT_TRUE(eventually([&] {
    return box->reported().find("dialling again") != std::string::npos &&
           lap->reported().find("dialling again") != std::string::npos;
  }));
  box.reset();
  lap.reset();
  head = launch(2, {"--set", "train.steps=4000", "--set", "checkpoint.every=4000", "--resume",
                    "--stop-after", "3999"});
  ticket = ticket_of(*head);
  box = join("box", ticket);
  lap = join("lap", ticket);
  const std::string resumed = "resuming after step ";
  ASSERT_TRUE(eventually([&] { return head->printed().find(resumed) != std::string::npos; }))
      << head->reported();
  const std::string printed = head->printed();
  EXPECT_GE(std::stol(printed.substr(printed.find(resumed) + resumed.size())), recorded);
}

// The head waits for it, rather than planning with a machine that is gone.
TEST_F(Join, WaitsForAMachineThatLeftBeforeTheStart) {
  const auto head = launch(2);
  const std::string ticket = ticket_of(*head);
  auto box = join("box", ticket);
  ASSERT_TRUE(eventually([&] { return head->reported().find("(1 of 2)") != std::string::npos; }));
  ::kill(box->pid(), SIGINT);
  EXPECT_EQ(box->wait().status, 130);
  const auto lap = join("lap", ticket);
  ASSERT_TRUE(eventually([&] { return head->reported().find("(2 of 2)") != std::string::npos; }));
  box = join("box", ticket);
  const Outcome launched = head->wait();
  EXPECT_EQ(launched.status, 0) << launched.err;
  EXPECT_THAT(launched.err, HasSubstr("box has joined"));
}

TEST_F(Join, RefusesMistakesBeforeItWaits) {
  std::filesystem::remove_all(data_);
  const Outcome absent = launch(1)->wait();
  EXPECT_EQ(absent.status, 3);
  EXPECT_THAT(absent.err, HasSubstr("texts does not exist here"));
  EXPECT_THAT(absent.out, Not(HasSubstr("motley1:")));
}

TEST_F(Join, IsRefusedTwiceFromOneHome) {
  const auto head = launch(2);
  const std::string ticket = ticket_of(*head);
  const auto box = join("box", ticket);
  ASSERT_TRUE(eventually([&] { return head->reported().find("(1 of 2)") != std::string::npos; }));
  const Outcome again = join("box", ticket)->wait();
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("this machine has joined that run already"));
}

TEST(JoinCommand, RefusesATextThatIsNoTicket) {
  const Outcome outcome = motley({"join", "motley1:40123@10.0.0.1/1765"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("this is not a ticket"));
  const Outcome absent = motley({"join", "/absent/ticket"});
  EXPECT_EQ(absent.status, 2);
  EXPECT_THAT(absent.err, HasSubstr("there is no file of that name"));
}

// As copied from the terminal of the head, both lines.
TEST(JoinCommand, FindsTheTicketInTheTextThatIsPrinted) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("ticket",
                   "On the other machine, within 15 minutes:\nmotley join motley1:1@"
                   "127.0.0.1/1765000000/" +
                       std::string(64, 'a') + "/" + std::string(32, '5') + "\r\n");
  const Outcome outcome = motley({"join", file});
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1 port 1: Connection refused"));
}

TEST(JoinCommand, NamesTheAddressThatDoesNotAnswer) {
  const std::string ticket =
      "motley1:1@127.0.0.1/1765000000/" + std::string(64, 'a') + "/" + std::string(32, '5');
  const Outcome outcome = motley({"join", ticket});
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1 port 1: Connection refused"));
}

}  // namespace
}  // namespace motley::test
