#include <fmt/format.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "plan/plan.h"
#include "plan/rounds/rounds_plan.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RoundsPlan by(std::int64_t steps, std::int64_t start) {
  RoundsPlan rounds;
  rounds.islands = {{Rank{0}}, {Rank{1}, Rank{2}}};
  rounds.steps = steps;
  rounds.start_steps = start;
  return rounds;
}

TEST(Rounds, FollowASynchronousStart) {
  const std::optional<RoundsPlan> rounds = by(3, 2);
  std::vector<StepScope> scopes;
  std::vector<std::int64_t> numbers;
  for (std::int64_t step = 1; step <= 9; ++step) {
    scopes.push_back(step_scope(rounds, step, 9));
    numbers.push_back(round_of(rounds, step, 9));
  }
  using enum StepScope;
  EXPECT_THAT(scopes, ElementsAre(kSynchronous, kSynchronous, kLocal, kLocal, kRoundEnd, kLocal,
                                  kLocal, kRoundEnd, kRoundEnd));
  EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 1, 1, 2, 2, 2, 3));
  EXPECT_EQ(step_scope(std::nullopt, 4, 9), kSynchronous);
  EXPECT_EQ(round_of(std::nullopt, 4, 9), 0);
}

// Each offer is adopted two steps later, and the last round ends with the training: with a round
// whose adoption would come too late as its first part.
TEST(Rounds, OverlapTheNextRound) {
  std::optional<RoundsPlan> rounds = by(3, 1);
  rounds->overlap_steps = 2;
  const auto until = [&](std::int64_t last_step) {
    std::vector<StepScope> scopes;
    for (std::int64_t step = 2; step <= last_step; ++step) {
      scopes.push_back(step_scope(rounds, step, last_step));
    }
    return scopes;
  };
  using enum StepScope;
  EXPECT_THAT(until(10), ElementsAre(kLocal, kLocal, kOffer, kLocal, kAdopt, kOffer, kLocal, kAdopt,
                                     kRoundEnd));
  EXPECT_THAT(until(9),
              ElementsAre(kLocal, kLocal, kOffer, kLocal, kAdopt, kLocal, kLocal, kRoundEnd));
  EXPECT_THAT(until(8), ElementsAre(kLocal, kLocal, kOffer, kLocal, kAdopt, kLocal, kRoundEnd));
  EXPECT_THAT(until(6), ElementsAre(kLocal, kLocal, kLocal, kLocal, kRoundEnd));
  EXPECT_EQ(round_of(rounds, 7, 10), 2);
  EXPECT_EQ(round_of(rounds, 8, 10), 3);
  EXPECT_EQ(round_of(rounds, 8, 9), 2);
  EXPECT_EQ(round_of(rounds, 6, 6), 1);
}

// Whatever the lengths: offers and adoptions alternate, each adoption overlap_steps after its offer
// or at the end, and rounds have their length but for the last.
TEST(Rounds, AdoptEachOfferOnce) {
  for (std::int64_t steps = 1; steps <= 5; ++steps) {
    for (std::int64_t overlap = 0; overlap < steps; ++overlap) {
      for (std::int64_t last_step = 3; last_step <= 24; ++last_step) {
        std::optional<RoundsPlan> rounds = by(steps, 2);
        rounds->overlap_steps = overlap;
        std::int64_t offered = 0;  // the step of an offer that is not adopted yet
        std::int64_t round = 0;
        for (std::int64_t step = 3; step <= last_step; ++step) {
          const StepScope scope = step_scope(rounds, step, last_step);
          const bool begins = step == 3 || round_of(rounds, step, last_step) != round;
          if (begins) {
            EXPECT_EQ(round_of(rounds, step, last_step), ++round);
          }
          if (scope == StepScope::kAdopt) {
            EXPECT_EQ(step, offered + overlap);
            offered = 0;
          }
          if (scope == StepScope::kOffer) offered = step;
          const bool ends = scope == StepScope::kOffer || scope == StepScope::kRoundEnd;
          const bool next_begins =
              step == last_step || round_of(rounds, step + 1, last_step) != round;
          EXPECT_EQ(ends, next_begins)
              << steps << " " << overlap << " " << last_step << " " << step;
          EXPECT_EQ(next_state_step(rounds, step, last_step) == step,
                    scope == StepScope::kAdopt || scope == StepScope::kRoundEnd);
        }
        EXPECT_EQ(offered, 0);
        EXPECT_EQ(step_scope(rounds, last_step, last_step), StepScope::kRoundEnd);
      }
    }
  }
}

// The training has one state after all steps but those within a round.
TEST(Rounds, HaveAStateWhereTheyEnd) {
  constexpr std::int64_t kLast = 17;
  for (const int start_island : {-1, 1}) {
    std::optional<RoundsPlan> rounds = by(4, 3);
    rounds->start_island = start_island;
    for (std::int64_t step = 1; step <= kLast; ++step) {
      const std::int64_t next = next_state_step(rounds, step, kLast);
      EXPECT_GE(next, step);
      EXPECT_NE(step_scope(rounds, next, kLast), StepScope::kLocal) << step;
      for (std::int64_t between = step; between < next; ++between) {
        EXPECT_EQ(step_scope(rounds, between, kLast), StepScope::kLocal) << step;
      }
    }
  }
  EXPECT_EQ(next_state_step(std::nullopt, 5, kLast), 5);
}

// One island may compute the start alone; then the others have its parameters only at the end.
TEST(Rounds, MayStartOnOneIsland) {
  std::optional<RoundsPlan> rounds = by(3, 3);
  EXPECT_EQ(saved_island(*rounds), 0);
  rounds->start_island = 1;
  EXPECT_EQ(saved_island(*rounds), 1);
  using enum StepScope;
  EXPECT_EQ(step_scope(rounds, 2, 9), kStart);
  EXPECT_EQ(step_scope(rounds, 3, 9), kStartEnd);
  EXPECT_EQ(step_scope(rounds, 4, 9), kLocal);
  EXPECT_FALSE(has_equal_copies(kStart));
  EXPECT_TRUE(has_equal_copies(kStartEnd));
  EXPECT_FALSE(has_equal_copies(kLocal));
  EXPECT_TRUE(has_equal_copies(kRoundEnd));
}

TEST(Rounds, KnowTheIslandOfEachRank) {
  const std::optional<RoundsPlan> rounds = by(3, 2);
  EXPECT_EQ(island_of(rounds, Rank{0}), 0);
  EXPECT_EQ(island_of(rounds, Rank{2}), 1);
  EXPECT_EQ(island_of(std::nullopt, Rank{2}), 0);
  const std::vector<Rank> all = {Rank{0}, Rank{1}, Rank{2}};
  EXPECT_THAT(in_island_of(rounds, Rank{1}, all), ElementsAre(Rank{1}, Rank{2}));
  EXPECT_EQ(in_island_of(std::nullopt, Rank{1}, all), all);
}

class RoundsInPlans : public testing::Test {
 protected:
  static Json plan_with(const std::string& islands, const std::string& second_chunk) {
    return Json::parse(fmt::format(
        R"({{"format": "motley.plan", "version": 6, "model_hash": "m", "schedule": "1f1b",
             "gradient_codec": "none", "micro_batch": 1, "micro_batches": 3,
             "predicted_step_s": 1, "notes": [],
             "ranks": [{0}, {0}, {0}],
             "chunks": [
               {{"first_layer": 0, "layer_count": 1, "codec": "none", "recompute": false,
                 "in_flight": 0, "queued_weights": 0, "hop_us": 0,
                 "replicas": [{{"rank": 0, "micro_batches": 2}}, {{"rank": 1, "micro_batches": 1}}]}},
               {{"first_layer": 1, "layer_count": 1, "codec": "none", "recompute": false,
                 "in_flight": 0, "queued_weights": 0, "hop_us": 0, "replicas": {1}}}],
             "rounds": {{"islands": {2}, "steps": 30, "start_steps": 10, "codec": "int4",
                         "outer_lr": 0.7, "outer_momentum": 0.6}}}})",
        R"({"machine": "a", "device": "cpu", "threads": 1, "link_mbps": 0, "compute_s": 1, "memory_bytes": 0})",
        second_chunk, islands));
  }

  static Result<Plan> read(const Json& json) { return parse_plan(json.dump(), "plan.json"); }

  static std::string problem_of(const std::string& islands,
                                const std::string& second_chunk = kSecond) {
    const auto plan = read(plan_with(islands, second_chunk));
    return plan.ok() ? "" : describe(plan.error());
  }

  static constexpr const char* kSecond =
      R"([{"rank": 0, "micro_batches": 2}, {"rank": 2, "micro_batches": 1}])";
};

TEST_F(RoundsInPlans, AreReadAsTheyAreWritten) {
  const auto plan = read(plan_with("[[0], [1, 2]]", kSecond));
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  ASSERT_TRUE(plan->rounds.has_value());
  EXPECT_EQ(plan->rounds->steps, 30);
  const auto again = read(plan_to_json(*plan));
  ASSERT_TRUE(again.ok()) << describe(again.error());
  EXPECT_EQ(plan_to_json(*again), plan_to_json(*plan));
  EXPECT_THAT(islands_by_rank(again->rounds), ElementsAre(0, 1, 1));
}

// Everything in them changes the computation.
TEST_F(RoundsInPlans, AreInThePlansHash) {
  const Plan plan = *read(plan_with("[[0], [1, 2]]", kSecond));
  const auto hash_with = [&](auto change) {
    Plan changed = plan;
    change(changed.rounds);
    return plan_hash(changed);
  };
  const std::vector<std::uint64_t> hashes = {
      plan_hash(plan),
      hash_with([](auto& rounds) { rounds.reset(); }),
      hash_with([](auto& rounds) { rounds->steps = 31; }),
      hash_with([](auto& rounds) { rounds->overlap_steps = 7; }),
      hash_with([](auto& rounds) { rounds->start_steps = 11; }),
      hash_with([](auto& rounds) { rounds->start_island = 0; }),
      hash_with([](auto& rounds) { rounds->codec = "int8"; }),
      hash_with([](auto& rounds) { rounds->outer_lr = 0.8; }),
      hash_with([](auto& rounds) { rounds->outer_momentum = 0.7; }),
      hash_with([](auto& rounds) {
        rounds->islands = {{Rank{0}, Rank{1}}, {Rank{2}}};
      })};
  EXPECT_EQ(std::set(hashes.begin(), hashes.end()).size(), hashes.size());
}

// The overlap is written if there is one, and is shorter than a round.
TEST_F(RoundsInPlans, MayOverlap) {
  Json json = plan_with("[[0], [1, 2]]", kSecond);
  EXPECT_EQ(read(json)->rounds->overlap_steps, 0);
  EXPECT_FALSE(plan_to_json(*read(json))["rounds"].contains("overlap_steps"));
  json["rounds"]["overlap_steps"] = 29;
  const auto plan = read(json);
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan->rounds->overlap_steps, 29);
  EXPECT_EQ(read(plan_to_json(*plan))->rounds->overlap_steps, 29);
  json["rounds"]["overlap_steps"] = 30;
  const auto refused = read(json);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(describe(refused.error()), HasSubstr("overlap_steps is 30, in rounds of 30"));
}

TEST_F(RoundsInPlans, AreRefusedIfTheIslandsDoNotFit) {
  EXPECT_THAT(problem_of("[[0], [1]]"), HasSubstr("rank 2 is in 0 islands instead of one"));
  EXPECT_THAT(problem_of("[[0], [0, 1, 2]]"), HasSubstr("must be ordered by their first ranks"));
  EXPECT_THAT(problem_of("[[0], [2, 1]]"), HasSubstr("must ascend"));
  EXPECT_THAT(problem_of("[[0, 1], [2]]"), HasSubstr("island 1 does not hold chunk 0"));
  EXPECT_THAT(problem_of("[[0], [1, 2]]",
                         R"([{"rank": 0, "micro_batches": 1}, {"rank": 2, "micro_batches": 2}])"),
              HasSubstr("in different islands"));
  EXPECT_THAT(problem_of("[[0, 1, 2]]"), HasSubstr("islands"));
  EXPECT_THAT(problem_of("[[0], [1, 2, 3]]"), HasSubstr("islands"));
}

}  // namespace
}  // namespace motley
