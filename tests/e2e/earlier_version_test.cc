// Files of version 0.1.0 (tests/e2e/golden/0.1.0): they open, and a run resumes from them.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/motley_command.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;

// The losses of the two steps after the resume, by 0.1.0. Other processors round otherwise.
constexpr double kLossOfStep5 = 5.415496246418403;
constexpr double kLossOfStep6 = 5.418381580011182;
constexpr double kTolerance = 1e-4;

class EarlierVersion : public testing::Test {
 protected:
  EarlierVersion() {
    std::filesystem::copy(MOTLEY_EARLIER_FILES, folder_.path(),
                          std::filesystem::copy_options::recursive);
  }

  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }

  static Outcome succeeds(const std::vector<std::string>& words) {
    Outcome outcome = motley(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome;
  }

  // A configuration of 0.1.0 on its machines.
  [[nodiscard]] std::vector<std::string> on_machines(std::vector<std::string> words) const {
    words.insert(words.end(), {"--cluster", at("cluster.toml"), "--profile", at("profile.json")});
    return words;
  }

  TemporaryFolder folder_;
};

TEST_F(EarlierVersion, RunIsReportedAndListed) {
  EXPECT_THAT(succeeds({"report", at("run")}).out, HasSubstr("stage 1"));
  EXPECT_THAT(succeeds({"ckpt", "list", at("run")}).out, HasSubstr("step-000004"));
  succeeds({"ckpt", "verify", at("run/checkpoints/step-000004")});
}

TEST_F(EarlierVersion, RunResumes) {
  succeeds({"train", at("job.toml"), "--cluster", at("cluster.toml"), "--run", at("run"),
            "--resume", "--set", "data.path=" + at("data")});
  const std::vector<std::string> losses = metric_column(at("run"), "loss");
  ASSERT_EQ(losses.size(), 6U);
  EXPECT_NEAR(std::stod(losses[4]), kLossOfStep5, kTolerance);
  EXPECT_NEAR(std::stod(losses[5]), kLossOfStep6, kTolerance);
}

TEST_F(EarlierVersion, PlanIsSimulatedAndTrains) {
  succeeds(on_machines({"simulate", at("plan.json"), "--config", at("job.toml"), "--set",
                        "data.path=" + at("data")}));
  succeeds({"train", at("job.toml"), "--cluster", at("cluster.toml"), "--plan", at("plan.json"),
            "--run", at("new"), "--set", "data.path=" + at("data")});
}

TEST_F(EarlierVersion, ProfileIsPlannedWith) {
  succeeds(on_machines({"plan", at("job.toml"), "--set", "data.path=" + at("data")}));
}

TEST_F(EarlierVersion, PackageTrains) {
  succeeds({"train", at("package.toml"), "--cluster", at("cluster.toml"), "--stages", "2", "--run",
            at("package-run"), "--set", "model.path=" + at("package")});
  EXPECT_EQ(metric_column(at("package-run"), "loss").size(), 3U);
}

}  // namespace
}  // namespace motley::test
