#include "cluster/run/run_follower.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/system/files.h"
#include "protocol/data_message.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

class RunFollowerTest : public ::testing::Test {
 protected:
  RunFollowerTest() {
    run_.planned.plan.ranks = {{.machine = "desk", .device = "cpu"}};
    run_.planned.plan.chunks = {{.layer_count = 1, .replicas = {{Rank{0}, 1}}}};
    run_.planned.config.data.kind = "images";
  }

  // What follows from one report of the data, by a new launch of the run.
  [[nodiscard]] Result<void> report(const DataMessage& message) {
    MOTLEY_TRY(run_.folder.make());
    MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(run_.folder.dir(), log_));
    MOTLEY_ASSIGN(MetricsFile metrics, MetricsFile::open(run_.folder.metrics_path(), 0));
    Progress progress(stdout, {.mute = true}, 0, 1);
    RunFollower follower(
        run_, lock, std::nullopt, [](int, const Json&) {}, [](Rank, const StepReport&) {},
        std::move(metrics), progress, log_);
    return follower.on_event(0, data_event(message));
  }

  [[nodiscard]] std::string stored_names() const {
    const auto text = read_file(run_.folder.classes_path(), 1000);
    return text.ok() ? Json::parse(*text).dump() : "none";
  }

  testing::TempFolder folder_;
  ReadyRun run_{.folder = RunFolder(folder_.path() / "run")};
  Log log_{""};
};

TEST_F(RunFollowerTest, StoresTheNamesOfTheClasses) {
  ASSERT_TRUE(report({10, "ab", {}, {}}).ok());
  EXPECT_EQ(stored_names(), "none");
  ASSERT_TRUE(report({10, "ab", {}, {"cat", "dog"}}).ok());
  EXPECT_EQ(stored_names(), R"(["cat","dog"])");
}

TEST_F(RunFollowerTest, KeepsTheNamesIfTheDataIsRefused) {
  ASSERT_TRUE(report({10, "ab", {}, {"cat", "dog"}}).ok());
  const DataMessage other{20, "cd", {}, {"car"}};
  run_.resumed = ResumedCheckpoint{.data = DataFingerprint{.bytes = 10, .hash = "ab"}};
  EXPECT_EQ(report(other).error().code, ErrorCode::kData);
  run_.resumed.reset();
  run_.counted_data = DataIdentity{10, "ab"};
  EXPECT_EQ(report(other).error().code, ErrorCode::kData);
  EXPECT_EQ(stored_names(), R"(["cat","dog"])");
}

}  // namespace
}  // namespace motley
