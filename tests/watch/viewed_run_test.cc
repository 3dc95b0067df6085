// The data that the page gets from a run's folder, while the folder is written.
#include "watch/browser/viewed_run.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/watch/written_run.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

class ViewedRunTest : public WrittenRun {
 protected:
  [[nodiscard]] ViewedRun open() const {
    auto view = RunView::open(dir_, 1.8e9);
    EXPECT_TRUE(view.ok());
    return ViewedRun(*std::move(view));
  }

  static Json json(const Result<std::string>& text) {
    EXPECT_TRUE(text.ok());
    return Json::parse(text.ok() ? *text : "null");
  }
};

TEST_F(ViewedRunTest, TellsWhatIsNewOnce) {
  add_steps(1, 3);
  ViewedRun run = open();
  run.look();
  add_steps(4, 5);
  const RunChanges changes = run.look();
  EXPECT_TRUE(changes.state);
  EXPECT_FALSE(changes.cut);
  EXPECT_EQ(changes.last_step, 5);
  EXPECT_EQ(json(run.history(100, 3))["step"], Json({4, 5}));
  EXPECT_FALSE(run.look().state);
}

TEST_F(ViewedRunTest, ARunOfManyStepsFitsAPage) {
  add_steps(1, 100000);
  ViewedRun run = open();
  EXPECT_EQ(run.look().last_step, 100000);
  for (const std::size_t points : {std::size_t{1}, std::size_t{1000}, std::size_t{10000}}) {
    const Json columns = json(run.history(points, 0));
    const auto steps = columns["step"].get<std::vector<std::int64_t>>();
    EXPECT_THAT(steps.size(), AllOf(Ge(2U), Le(std::max<std::size_t>(points, 4))));
    EXPECT_EQ(steps.back(), 100000);
    for (const char* column : {"loss", "step_s", "tokens_per_s", "bubble", "lr"}) {
      EXPECT_EQ(columns[column].size(), steps.size()) << column;
    }
  }
}

TEST_F(ViewedRunTest, ALotIsReadByManyLooks) {
  add_steps(1, 3);
  ViewedRun run = open();
  EXPECT_FALSE(run.look().has_more);
  std::filesystem::resize_file(dir_ / "metrics.jsonl", std::uintmax_t{64} << 20);
  EXPECT_TRUE(run.look().has_more);
  EXPECT_TRUE(json(run.part(RunDocument::kState))["reading"].is_object());
}

TEST_F(ViewedRunTest, ACutRunBeginsAnew) {
  add_steps(1, 9);
  ViewedRun run = open();
  run.look();
  std::filesystem::remove(dir_ / "metrics.jsonl");
  add_steps(1, 4);
  const RunChanges changes = run.look();
  EXPECT_TRUE(changes.cut);
  EXPECT_EQ(changes.last_step, 4);
}

TEST_F(ViewedRunTest, OfAFolderThatIsGoneNothingIsTold) {
  add_steps(1, 9);
  ViewedRun run = open();
  run.look();
  std::filesystem::remove_all(dir_);
  EXPECT_TRUE(run.look().description);
  EXPECT_FALSE(run.part(RunDocument::kDescription).ok());
  EXPECT_FALSE(run.part(RunDocument::kState).ok());
  EXPECT_FALSE(run.history(100, 0).ok());
  EXPECT_FALSE(run.events(10).ok());
  EXPECT_FALSE(run.metrics(MetricsFormat::kOpenMetrics).ok());
}

TEST_F(ViewedRunTest, HasWhatThePageAsksFor) {
  add_steps(1, 9);
  ViewedRun run = open();
  run.look();
  const Json about = json(run.part(RunDocument::kDescription));
  EXPECT_TRUE(about["run"]["state"].is_string());
  EXPECT_EQ(about["machines"].size(), 2U);
  EXPECT_EQ(about["ranks"].size(), 2U);
  EXPECT_TRUE(json(run.part(RunDocument::kState))["verdict"]["text"].is_string());
  EXPECT_TRUE(json(run.part(RunDocument::kTimeline)).contains("measured"));
  EXPECT_TRUE(json(run.events(10)).is_array());
}

}  // namespace
}  // namespace motley
