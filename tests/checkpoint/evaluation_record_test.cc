#include "checkpoint/evaluations/evaluation_record.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using motley::testing::TestRun;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

EvaluationRecord record_of(const std::vector<double>& losses) {
  EvaluationRecord record;
  std::int64_t step = 0;
  for (const double loss : losses) record = with_evaluation(record, step += 10, loss, true);
  return record;
}

TEST(EvaluationRecord, NamesTheFirstOfTheLowest) {
  EXPECT_EQ(record_of({}), EvaluationRecord{});
  const EvaluationRecord record = record_of({3, 2, 2.5, 2});
  EXPECT_EQ(record.best, (BestEvaluation{20, 2}));
  EXPECT_EQ(record.lowest, 2);
  EXPECT_EQ(record.without_lower, 2);
  EXPECT_EQ(best_text(*record.best), "held-out loss 2.0000 after step 20");
  EXPECT_EQ(early_stop_text(record), "2 evaluations in a row without a lower held-out loss");
}

TEST(EvaluationRecord, BeginsToCountAfterEachLowerLoss) {
  EXPECT_EQ(record_of({3, 4, 5, 2}).without_lower, 0);
  EXPECT_EQ(record_of({3, 4, 5, 2, 3}).without_lower, 1);
}

TEST(EvaluationRecord, StopsARunAfterSoManyWithoutALowerLoss) {
  const EvaluationRecord record = record_of({3, 2, 2.5, 2});
  EXPECT_FALSE(stops_early(record, 0));
  EXPECT_FALSE(stops_early(record, 3));
  EXPECT_TRUE(stops_early(record, 2));
  EXPECT_TRUE(stops_early(record, 1));
}

TEST(EvaluationRecord, TakesNoLossThatIsNotFinite) {
  const EvaluationRecord none = record_of({kNan, std::numeric_limits<double>::infinity()});
  EXPECT_FALSE(none.best);
  EXPECT_EQ(none.without_lower, 2);
  EXPECT_EQ(record_of({kNan, 3, kNan}).best, (BestEvaluation{20, 3}));
}

// Otherwise a run that was interrupted between two evaluations would stop earlier or later.
TEST(EvaluationRecord, CountsOnlyTheRegularOnes) {
  EvaluationRecord record = record_of({3, 2});
  record = with_evaluation(record, 25, 1.5, false);
  EXPECT_EQ(record.best, (BestEvaluation{25, 1.5}));
  EXPECT_EQ(record.lowest, 2);
  record = with_evaluation(record, 30, 1.8, true);
  EXPECT_EQ(record.without_lower, 0) << "1.8 is lower than 2";
  EXPECT_EQ(record.best->step, 25);
}

TEST(EvaluationRecord, IsTheSameAfterWritingAndReading) {
  for (const EvaluationRecord& record :
       {EvaluationRecord{}, record_of({0.1 + 0.2}), record_of({kNan}), record_of({-1e-300, 5})}) {
    const auto read = evaluation_record_from_json(
        Json::parse(evaluation_record_to_json(record).dump()), "the test");
    ASSERT_TRUE(read.ok()) << describe(read.error());
    EXPECT_EQ(*read, record);
  }
}

TEST(EvaluationRecord, RefusesWhatIsImpossible) {
  for (const char* text :
       {R"({})", R"({"without_lower":-1})", R"({"without_lower":0,"best_step":5})",
        R"({"without_lower":0,"best_step":0,"best_loss":1})", R"({"without_lower":"2"})",
        R"({"without_lower":0,"best_loss":1})", R"({"without_lower":0,"lowest":"a"})"}) {
    const auto read = evaluation_record_from_json(Json::parse(text), "the test");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << text;
  }
}

class BestCheckpointTest : public ::testing::Test {
 protected:
  void save(std::int64_t step, std::optional<BestEvaluation> best) {
    const auto shards = run_.write(step, 1, 1);
    ASSERT_TRUE(shards.ok()) << describe(shards.error());
    CheckpointState state = TestRun::state(step);
    if (best) state.evaluations = EvaluationRecord{best, best->loss, 0};
    const auto saved = commit_checkpoint(run_.dir(), motley::testing::kLaunch, state, *shards,
                                         Json{{"train", {{"seed", -7}}}}, Json());
    ASSERT_TRUE(saved.ok()) << describe(saved.error());
  }

  [[nodiscard]] std::int64_t best_step() const {
    const auto best = best_checkpoint(list_checkpoints(run_.dir()));
    return best ? best->info.step : 0;
  }

  TestRun run_;
};

TEST_F(BestCheckpointTest, IsTheOneThatTheNewestNames) {
  save(10, BestEvaluation{10, 3});
  save(20, BestEvaluation{20, 2});
  save(30, BestEvaluation{20, 2});
  EXPECT_EQ(best_step(), 20);
  const auto manifest = read_manifest(checkpoint_folder(run_.dir(), 30));
  ASSERT_TRUE(manifest.ok()) << describe(manifest.error());
  EXPECT_EQ(manifest->state.evaluations, (EvaluationRecord{BestEvaluation{20, 2}, 2, 0}));
}

TEST_F(BestCheckpointTest, IsTheOneBeforeIfTheBestWasNotSaved) {
  save(10, BestEvaluation{10, 3});
  save(30, BestEvaluation{20, 2});
  EXPECT_EQ(best_step(), 10);
}

TEST_F(BestCheckpointTest, IsNoneIfEvaluationsAreNotCompared) {
  EXPECT_EQ(best_step(), 0);
  save(10, std::nullopt);
  EXPECT_EQ(best_step(), 0);
}

}  // namespace
}  // namespace motley
