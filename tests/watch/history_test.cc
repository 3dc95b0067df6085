#include "watch/view/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::ElementsAre;

StepMetrics step(std::int64_t number, double loss) {
  return {.step = number, .outcome = {.loss = loss, .tokens = 100}, .step_s = 0.5};
}

TEST(History, ShowsAllStepsWhereTheyFit) {
  History history;
  for (int i = 1; i <= 4; ++i) history.add(step(i, 3.0 - i));
  const Json columns = history.columns(100);
  EXPECT_THAT(columns["step"].get<std::vector<int>>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(columns["loss"].get<std::vector<double>>(), ElementsAre(2, 1, 0, -1));
  EXPECT_THAT(columns["tokens_per_s"].get<std::vector<double>>(), ElementsAre(200, 200, 200, 200));
  EXPECT_THAT(history.columns(100, 2)["step"].get<std::vector<int>>(), ElementsAre(3, 4));
}

TEST(History, GoesBackWithTheRun) {
  History history;
  for (int i = 1; i <= 6; ++i) history.add(step(i, 1));
  StepMetrics evaluated = step(7, 1);
  evaluated.eval_loss = 2;
  history.add(evaluated);
  history.add(step(4, 5));
  const Json columns = history.columns(100);
  EXPECT_THAT(columns["step"].get<std::vector<int>>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(columns["loss"].back(), 5);
  EXPECT_TRUE(columns["eval"].empty());
}

TEST(History, SaysNullWhereALossIsNoNumber) {
  History history;
  history.add(step(1, std::nan("")));
  history.add(step(2, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(history.columns(10)["loss"][0].is_null());
  EXPECT_TRUE(history.columns(10)["loss"][1].is_null());
}

TEST(History, KeepsARunOfAnyLengthInBoundedMemory) {
  History history;
  const std::int64_t count = 3 * static_cast<std::int64_t>(History::kRowsMax);
  for (std::int64_t i = 1; i <= count; ++i) history.add(step(i, i == 1000 ? 99 : 1));
  EXPECT_LE(history.size(), History::kRowsMax);
  const Json columns = history.columns(50);
  EXPECT_EQ(columns["step"].front(), 1);
  EXPECT_EQ(columns["step"].back(), count);
  const auto losses = columns["loss"].get<std::vector<double>>();
  EXPECT_EQ(std::ranges::max(losses), 99);
}

// For any request: at most as many points, ascending steps, only true values, including the first,
// the last, the smallest and the largest loss.
RC_GTEST_PROP(HistoryThins, KeepingTheExtremes, ()) {
  const auto losses =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-1000, 1000)));
  const auto points = *rc::gen::inRange<std::size_t>(History::kPointsMin, 40);
  std::vector<History::Row> rows;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    rows.push_back({.step = static_cast<std::int64_t>(i), .loss = static_cast<double>(losses[i])});
  }
  const auto kept = thinned(rows, points);
  RC_ASSERT(kept.size() <= points);
  RC_ASSERT(std::ranges::is_sorted(kept, {}, &History::Row::step));
  for (const History::Row& row : kept) {
    RC_ASSERT(row.loss == losses[static_cast<std::size_t>(row.step)]);
  }
  const auto [least, greatest] = std::ranges::minmax(losses);
  const auto has = [&](double loss) { return std::ranges::count(kept, loss, &History::Row::loss); };
  RC_ASSERT(has(least) > 0);
  RC_ASSERT(has(greatest) > 0);
  RC_ASSERT(kept.front().step == 0);
  RC_ASSERT(kept.back().step == rows.back().step);
}

}  // namespace
}  // namespace motley
