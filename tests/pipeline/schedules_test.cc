#include "pipeline/schedule/schedules.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "pipeline/schedule/validate.h"
#include "plan/assign_micro_batches.h"
#include "tests/pipeline/schedule_fixtures.h"

namespace motley {
namespace {

std::string rank_text(const Schedule& schedule, std::size_t rank) {
  std::string text;
  for (const Action& action : schedule.ranks[rank]) {
    text.append(text.empty() ? "" : " ").append(to_text(action));
  }
  return text;
}

// Without loads, transfers, vote and update.
std::string computing_text(const Schedule& schedule, std::size_t rank) {
  constexpr std::array kComputing = {ActionKind::kForward, ActionKind::kBackward,
                                     ActionKind::kBackwardInput, ActionKind::kBackwardWeight,
                                     ActionKind::kReduce};
  std::string text;
  for (const Action& action : schedule.ranks[rank]) {
    if (std::ranges::find(kComputing, action.kind) == kComputing.end()) continue;
    text.append(text.empty() ? "" : " ").append(to_text(action));
  }
  return text;
}

TEST(OneFOneB, AlternatesAfterWarmUp) {
  const Schedule schedule = one_f_one_b_schedule(chain(2, 3));
  EXPECT_EQ(rank_text(schedule, 0),
            "RG0.0 L0 ST0 F0.0 SA0.0 L1 ST1 F0.1 SA0.1 RG0.1 B0.0 RG0.2 L2 ST2 F0.2 SA0.2 B0.1 "
            "B0.2 V S");
  EXPECT_EQ(rank_text(schedule, 1),
            "RT0 RA1.0 RT1 RA1.1 F1.0 B1.0 SG1.0 RT2 RA1.2 F1.1 B1.1 SG1.1 F1.2 B1.2 SG1.2 V S");
}

TEST(OneFOneB, HoldsAsManyMicroBatchesAsChunksFollow) {
  const auto stats =
      validate_schedule(one_f_one_b_schedule(chain(4, 8)), /*tied_across_ranks=*/false);
  ASSERT_TRUE(stats.ok()) << describe(stats.error());
  EXPECT_EQ(stats->peak_in_flight, (std::vector<int>{4, 3, 2, 1}));
}

TEST(OneFOneB, HoldsAsManyMicroBatchesAsItIsTold) {
  ScheduleInput input = chain(3, 8);
  input.in_flight = {7, 4, 2};
  const auto stats = validate_schedule(one_f_one_b_schedule(input), /*tied_across_ranks=*/false);
  ASSERT_TRUE(stats.ok()) << describe(stats.error());
  EXPECT_EQ(stats->peak_in_flight, (std::vector<int>{7, 4, 2}));
}

TEST(GPipe, HoldsAllMicroBatches) {
  const auto stats = validate_schedule(gpipe_schedule(chain(3, 5)), /*tied_across_ranks=*/false);
  ASSERT_TRUE(stats.ok()) << describe(stats.error());
  EXPECT_EQ(stats->peak_in_flight, (std::vector<int>{5, 5, 5}));
}

TEST(GPipe, RunsAlternatelyOnOneRankOnlyWhen1F1B) {
  EXPECT_EQ(rank_text(gpipe_schedule(chain(1, 2)), 0), "L0 F0.0 L1 F0.1 B0.0 B0.1 V S");
  EXPECT_EQ(rank_text(one_f_one_b_schedule(chain(1, 2)), 0), "L0 F0.0 B0.0 L1 F0.1 B0.1 V S");
}

TEST(Split, PutsWeightPartsWhereItsRankWouldWait) {
  const Schedule schedule = split_schedule(chain(2, 4));
  EXPECT_EQ(computing_text(schedule, 0),
            "F0.0 F0.1 BI0.0 F0.2 BI0.1 F0.3 BW0.0 BI0.2 BW0.1 BW0.2 BI0.3 BW0.3");
  EXPECT_EQ(computing_text(schedule, 1),
            "F1.0 BI1.0 F1.1 BI1.1 F1.2 BW1.0 BI1.2 F1.3 BW1.1 BI1.3 BW1.2 BW1.3");
}

TEST(Split, QueuesNoMoreThanItIsTold) {
  ScheduleInput input = chain(3, 8);
  input.in_flight = {5, 3, 1};
  input.queued_weights = {1, 2, 2};
  const auto stats = validate_schedule(split_schedule(input), /*tied_across_ranks=*/false);
  ASSERT_TRUE(stats.ok()) << describe(stats.error());
  EXPECT_EQ(stats->peak_in_flight, (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(stats->peak_queued_weights, (std::vector<int>{1, 2, 2}));
}

TEST(Split, OfALargeChainIsQuicklyMadeAndRight) {
  const Schedule schedule = split_schedule(chain(512, 256));
  EXPECT_TRUE(validate_schedule(schedule, /*tied_across_ranks=*/false).ok());
}

TEST(Schedules, HandOverWithinARankWithoutMessages) {
  const Schedule schedule = one_f_one_b_schedule({{{Rank{0}}, {Rank{0}}}, 1, 1, false});
  EXPECT_EQ(rank_text(schedule, 0), "L0 F0.0 F1.0 B1.0 B0.0 V S");
}

TEST(OneFOneB, LetsReplicasShareTheWindow) {
  ScheduleInput input = chain(2, 4);
  input.rank_count = 3;
  input.owners = {{Rank{0}, Rank{1}, Rank{0}, Rank{0}}, std::vector(4, Rank{2})};
  const Schedule schedule = one_f_one_b_schedule(input);
  EXPECT_EQ(computing_text(schedule, 0), "F0.0 B0.0 F0.2 F0.3 B0.2 B0.3 R0");
  EXPECT_EQ(computing_text(schedule, 1), "F0.1 B0.1 R0");
  EXPECT_EQ(computing_text(schedule, 2), "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3");
}

TEST(Schedules, OfAThousandRanksAreQuicklyMadeAndRight) {
  const Schedule schedule = one_f_one_b_schedule(chain(1024, 256));
  EXPECT_TRUE(validate_schedule(schedule, /*tied_across_ranks=*/false).ok());
}

TEST(Schedules, SumTiedGradientsOnTheTwoOuterRanks) {
  ScheduleInput input = chain(3, 2);
  input.tied_across_ranks = true;
  const Schedule schedule = gpipe_schedule(input);
  EXPECT_TRUE(rank_text(schedule, 0).ends_with("B0.1 T V S"));
  EXPECT_TRUE(rank_text(schedule, 1).ends_with("SG1.1 V S"));
  EXPECT_TRUE(rank_text(schedule, 2).ends_with("SG2.1 T V S"));
}

// All-reduces run one after another.
TEST(Schedules, SumFirstWhatIsReadyFirst) {
  ScheduleInput input{{{Rank{0}, Rank{1}}, {Rank{2}, Rank{2}}}, 3, 2, true};
  EXPECT_TRUE(rank_text(gpipe_schedule(input), 1).ends_with("B0.1 R0 T V S"));
  EXPECT_TRUE(rank_text(one_f_one_b_schedule(input), 0).ends_with("B0.0 R0 T V S"));
  EXPECT_TRUE(rank_text(split_schedule(input), 0).ends_with("BI0.0 BW0.0 T R0 V S"));
  input = {{{Rank{0}, Rank{1}}}, 2, 2, true};
  EXPECT_TRUE(rank_text(split_schedule(input), 0).ends_with("BI0.0 BW0.0 R0 T V S"));
}

TEST(Schedules, ForwardOnlyEndsWithTheVote) {
  const Schedule schedule = forward_schedule(chain(2, 2));
  EXPECT_EQ(rank_text(schedule, 0), "L0 ST0 F0.0 SA0.0 L1 ST1 F0.1 SA0.1 V");
  EXPECT_EQ(rank_text(schedule, 1), "RT0 RA1.0 RT1 RA1.1 F1.0 F1.1 V");
}

TEST(Schedules, ComeFromThePlansName) {
  Plan plan;
  plan.ranks.resize(1);
  plan.chunks = {{.layer_count = 1, .replicas = {{Rank{0}, 1}}}};
  for (const ScheduleFacts& each : kSchedules) {
    plan.schedule = each.name;
    EXPECT_EQ(make_schedule(plan, false)->name, each.name);
  }
  plan.schedule = "zigzag";
  EXPECT_EQ(make_schedule(plan, false).error().code, ErrorCode::kConfig);
}

RC_GTEST_PROP(Schedules, AreValidForAnyMapOfChunksToRanks, ()) {
  const ScheduleInput input = random_input();
  const auto stats = validate_schedule(random_schedule(input), input.tied_across_ranks);
  if (!stats.ok()) RC_FAIL(describe(stats.error()));
  // Receives are posted two compute actions ahead: at most the inputs of three actions, each a
  // tensor and possibly targets.
  for (const int posted : stats->peak_posted_receives) RC_ASSERT(posted <= 6);
  // Each send directly follows the action that produces the value.
  for (const int unsent : stats->peak_unsent) RC_ASSERT(unsent <= 1);
}

// The planner relies on this (plan/assign_micro_batches.h).
RC_GTEST_PROP(OneFOneB, HoldsWhatComesToAReplicaInAnyRowOfItsWindow, ()) {
  const ScheduleInput input = random_input();
  const auto stats = validate_schedule(one_f_one_b_schedule(input), input.tied_across_ranks);
  if (!stats.ok()) RC_FAIL(describe(stats.error()));
  for (std::size_t c = 0; c < input.owners.size(); ++c) {
    const std::vector<Rank> replicas = distinct_ranks(input.owners[c]);
    std::vector<std::size_t> owners;
    for (const Rank owner : input.owners[c]) {
      const auto replica = std::ranges::lower_bound(replicas, owner);
      owners.push_back(static_cast<std::size_t>(replica - replicas.begin()));
    }
    const int window =
        input.in_flight.empty() ? static_cast<int>(input.owners.size() - c) : input.in_flight[c];
    RC_ASSERT(stats->peak_in_flight[c] ==
              std::ranges::max(max_in_window(owners, replicas.size(), window)));
  }
}

RC_GTEST_PROP(Split, HoldsNoMoreThanItsBounds, ()) {
  const ScheduleInput input = random_input();
  const auto stats = validate_schedule(split_schedule(input), input.tied_across_ranks);
  if (!stats.ok()) RC_FAIL(describe(stats.error()));
  const auto chunks = static_cast<int>(input.owners.size());
  for (int c = 0; c < chunks; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const int window = input.in_flight.empty() ? chunks - c : input.in_flight[at];
    const int first_window = input.in_flight.empty() ? chunks : input.in_flight[0];
    const int queued = input.queued_weights.empty() ? first_window : input.queued_weights[at];
    RC_ASSERT(stats->peak_in_flight[at] <= window);
    RC_ASSERT(stats->peak_queued_weights[at] <= queued);
  }
}

void add_random_times(ScheduleInput& input) {
  const auto some_time = rc::gen::inRange<std::int64_t>(1, 50);
  for (const std::vector<Rank>& owners : input.owners) {
    ChunkTimes& times = input.times.emplace_back();
    times.hop = *rc::gen::inRange<std::int64_t>(0, 80);
    for (std::size_t k = 0; k < distinct_ranks(owners).size(); ++k) {
      times.replicas.push_back({*some_time, *some_time, *some_time});
    }
  }
}

// The orders are recorded from a run with these times, so they are valid and bounded for any.
RC_GTEST_PROP(Split, IsValidForAnyTimes, ()) {
  ScheduleInput input = random_input();
  add_random_times(input);
  const auto stats = validate_schedule(split_schedule(input), input.tied_across_ranks);
  if (!stats.ok()) RC_FAIL(describe(stats.error()));
}

// A weight part runs either to free space in its chunk's queue or because its rank is otherwise
// idle. In the latter case chunks whose gradients must still be all-reduced come first.
RC_GTEST_PROP(Split, DoesWeightPartsOfSummedChunksFirst, ()) {
  ScheduleInput input = random_input();
  const std::size_t chunks = input.owners.size();
  if (input.queued_weights.empty()) input.queued_weights.assign(chunks, 2);
  add_random_times(input);
  const auto is_summed = [&](ChunkId chunk) {
    return distinct_ranks(input.owners[chunk.index()]).size() > 1;
  };
  for (const auto& actions : split_schedule(input).ranks) {
    std::map<ChunkId, std::deque<MicroId>> queues;
    for (const Action& action : actions) {
      std::deque<MicroId>& queue = queues[action.chunk];
      if (action.kind == ActionKind::kBackwardInput) queue.push_back(action.micro);
      if (action.kind != ActionKind::kBackwardWeight) continue;
      const bool shortens_queue = std::ssize(queue) == input.queued_weights[action.chunk.index()];
      const bool a_sum_waits = std::ranges::any_of(queues, [&](const auto& of_chunk) {
        return is_summed(of_chunk.first) && !of_chunk.second.empty();
      });
      RC_ASSERT(shortens_queue || is_summed(action.chunk) || !a_sum_waits);
      RC_ASSERT(queue.front() == action.micro);
      queue.pop_front();
    }
  }
}

// Rank 0 has a replica of chunk 0: its weight part precedes older ones of chunk 1.
TEST(Split, LetsASumBeginBeforeOtherWeightParts) {
  ScheduleInput input;
  input.rank_count = 2;
  input.micro_batches = 2;
  input.owners = {{Rank{0}, Rank{1}}, {Rank{0}, Rank{0}}};
  input.in_flight = {2, 2};
  input.queued_weights = {2, 2};
  input.times = {{{{10, 10, 10}, {10, 10, 10}}, 0}, {{{10, 10, 10}}, 0}};
  EXPECT_EQ(computing_text(split_schedule(input), 0),
            "F0.0 F1.0 BI1.0 BI0.0 F1.1 BI1.1 BW0.0 BW1.0 BW1.1 R0");
}

TEST(Split, FillsTheWaitForASlowLinkWithForwardsAndWeightParts) {
  ScheduleInput input = chain(2, 4);
  input.in_flight = {4, 1};
  input.queued_weights = {4, 4};
  // A transfer takes as long as a forward and a backward together.
  input.times = {{{{10, 10, 10}}, 30}, {{{10, 10, 10}}, 0}};
  const Schedule schedule = split_schedule(input);
  EXPECT_EQ(computing_text(schedule, 0),
            "F0.0 F0.1 F0.2 F0.3 BI0.0 BW0.0 BI0.1 BW0.1 BI0.2 BW0.2 BI0.3 BW0.3");
  EXPECT_EQ(computing_text(schedule, 1),
            "F1.0 BI1.0 BW1.0 F1.1 BI1.1 BW1.1 F1.2 BI1.2 BW1.2 F1.3 BI1.3 BW1.3");
}

// A rank with the first and the last chunk serves the last one first, since others wait for it.
TEST(Split, ServesTheChunkNearestToTheEndFirst) {
  ScheduleInput input;
  input.rank_count = 2;
  input.micro_batches = 3;
  input.owners = {std::vector(3, Rank{0}), std::vector(3, Rank{1}), std::vector(3, Rank{0})};
  input.in_flight = {3, 3, 3};
  const Schedule schedule = split_schedule(input);
  EXPECT_TRUE(validate_schedule(schedule, /*tied_across_ranks=*/false).ok());
  EXPECT_TRUE(computing_text(schedule, 0).starts_with("F0.0 F0.1 F2.0 BI2.0 F2.1"));
}

}  // namespace
}  // namespace motley
