// Commands on a run folder, during the training and afterwards.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AfterRun : public testing::Test {
 protected:
  [[nodiscard]] bool reaches(std::ptrdiff_t step) const {
    return eventually([&] {
      const std::string text = read_text(fs::path(run_) / "metrics.jsonl");
      return std::ranges::count(text, '\n') >= step;
    });
  }

  SmallJob job_;
  const std::string run_ = job_.run_dir("run");
};

const std::vector<std::string> kLong = {"--set", "train.steps=1000000"};

std::vector<std::string> long_run(const std::vector<std::string>& more) {
  std::vector<std::string> words = kLong;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> short_run(const std::string& steps) {
  return {"--set", "train.warmup_steps=1", "--set", "train.steps=" + steps};
}

TEST_F(AfterRun, AReportSaysWhatItIsOfWhileTheRunGoesOn) {
  ASSERT_EQ(job_.train("run", long_run({"--stop-after", "5"})).status, 0);
  EXPECT_THAT(motley({"report", run_}).out,
              AllOf(HasSubstr("steps 1 to 5; medians"), Not(HasSubstr("in progress"))));
  RunningMotley resumed(job_.train_words("run", long_run({"--resume"})));
  ASSERT_TRUE(reaches(8));
  const Outcome meanwhile = motley({"report", run_});
  EXPECT_THAT(meanwhile.out,
              AllOf(HasSubstr(fmt::format("in progress: process {} on ", resumed.pid())),
                    HasSubstr(" of 1000000 completed"), HasSubstr("of the session before:"),
                    HasSubstr("steps 1 to 5; medians")));
  const Json json = Json::parse(motley({"report", run_, "--json"}).out);
  EXPECT_EQ(json.at("last_step"), 5);
  EXPECT_GE(json.at("under_way").at("last_step"), 8);
  ::kill(resumed.pid(), SIGINT);
  EXPECT_EQ(resumed.wait().status, 130);
  EXPECT_THAT(motley({"report", run_}).out,
              AllOf(HasSubstr("(resumed after step 5)"), Not(HasSubstr("in progress"))));
}

TEST_F(AfterRun, AReportThatIsNotThereYetSaysHowFarTheRunIs) {
  RunningMotley run(job_.train_words("run", long_run({})));
  ASSERT_TRUE(reaches(3));
  const Outcome outcome = motley({"report", run_});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(fmt::format("process {} on ", run.pid())),
                                 HasSubstr(" of 1000000 completed"), HasSubstr("metrics.jsonl")));
}

// The measured bytes are of the earlier session with another plan.
TEST_F(AfterRun, NothingIsLearnedFromAReportOfAnotherPlan) {
  ASSERT_EQ(job_.train("run", short_run("3")).status, 0);
  Json report = Json::parse(read_text(fs::path(run_) / "report.json"));
  report["plan_hash"] = "0123456789abcdef";
  job_.folder().write("run/report.json", report.dump());
  const Outcome outcome = motley({"plan", (job_.folder() / "job.toml").string(), "--profile",
                                  run_ + "/profile.json", "--learn", run_});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, HasSubstr("is of an earlier session with another plan"));
}

TEST_F(AfterRun, AStepIsDrawnWhereOneWasRecorded) {
  ASSERT_EQ(job_.train("run", short_run("2")).status, 0);
  const std::string picture = (job_.folder() / "step.svg").string();
  const Outcome none = motley({"report", run_, "--svg", picture});
  EXPECT_EQ(none.status, 3);
  EXPECT_THAT(none.err, AllOf(HasSubstr("recorded no step"), HasSubstr("train 3 steps or more")));
  ASSERT_EQ(job_.train("more", short_run("3")).status, 0);
  EXPECT_EQ(motley({"report", job_.run_dir("more"), "--svg", picture}).status, 0);
  EXPECT_THAT(read_text(picture), HasSubstr("step 3, as measured"));
}

TEST_F(AfterRun, APageTellsAllOfTheRunAndTensorboardHasItsSteps) {
  std::vector<std::string> words = short_run("3");
  words.insert(words.end(), {"--set", "run.tensorboard=true"});
  ASSERT_EQ(job_.train("run", words).status, 0);
  const std::string page = (job_.folder() / "run.html").string();
  const Outcome outcome = motley({"report", run_, "--html", page});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(read_text(page),
              AllOf(HasSubstr("Predicted and measured"), HasSubstr("Step 3, as measured"),
                    HasSubstr("A step, as simulated"), HasSubstr("Most useful upgrades"),
                    Not(HasSubstr("Unknown: ")), Not(HasSubstr("<script"))));
  // A run that was lost has no report.
  fs::remove(fs::path(run_) / "report.json");
  EXPECT_EQ(motley({"report", run_, "--html", page}).status, 0);
  EXPECT_THAT(read_text(page), Not(HasSubstr("Predicted and measured")));
  const auto files = fs::directory_iterator(fs::path(run_) / "tensorboard");
  ASSERT_NE(files, fs::directory_iterator());
  EXPECT_THAT(read_text(files->path()), AllOf(HasSubstr("brain.Event:2"), HasSubstr("train/loss")));
}

TEST_F(AfterRun, TextIsGeneratedAsTextForProgramsToo) {
  const std::string text = job_.folder().write("text", std::string(3000, 'a'));
  ASSERT_EQ(job_.train("run", {"--set", "train.steps=40", "--set", "data.kind=text", "--set",
                               "data.path=" + text})
                .status,
            0);
  const Outcome outcome = motley(
      {"generate", run_, "--prompt", "aaaa", "--tokens", "8", "--temperature", "0", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("text"), "aaaaaaaa");
  EXPECT_EQ(json.at("tokens").size(), 8U);
}

}  // namespace
}  // namespace motley::test
