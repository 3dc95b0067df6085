
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/pipeline/schedule_fixtures.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string verdict(const std::string& text) {
  const auto schedule = parse_schedule(text, "s");
  if (!schedule.ok()) return schedule.error().what;
  const auto stats = validate_schedule(*schedule);
  return stats.ok() ? "valid" : stats.error().what;
}

std::string one_rank(const std::string& actions) {
  return verdict("schedule 1f1b micro_batches=1 owners=0\nrank 0: " + actions);
}

std::string two_ranks(const std::string& first, const std::string& second) {
  return verdict("schedule 1f1b micro_batches=1 owners=0,1\nrank 0: " + first +
                 "\nrank 1: " + second);
}

constexpr const char* kFirst = "L0 ST0 F0.0 SA0.0 RG0.0 B0.0 V S";
constexpr const char* kSecond = "RT0 RA1.0 F1.0 B1.0 SG1.0 V S";

TEST(ValidateSchedule, AcceptsTheSmallest) {
  EXPECT_EQ(one_rank("L0 F0.0 B0.0 V S"), "valid");
  EXPECT_EQ(two_ranks(kFirst, kSecond), "valid");
}

TEST(ValidateSchedule, NamesTheOffendingAction) {
  EXPECT_EQ(one_rank("F0.0 L0 B0.0 V S"),
            "schedule '1f1b' is wrong: rank 0, action 0 (F0.0): the micro-batch is not loaded");
}

TEST(ValidateSchedule, WantsVoteAndUpdateLastAndOnce) {
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 S V"), HasSubstr("before the vote"));
  EXPECT_THAT(one_rank("L0 F0.0 V B0.0 S"), HasSubstr("has not computed everything"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 V"), HasSubstr("does not update"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 V S S"), HasSubstr("may follow the update"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 V V S"), HasSubstr("may follow the vote"));
}

TEST(ValidateSchedule, WantsEachWeightPartOnceAfterItsInputPart) {
  EXPECT_EQ(one_rank("L0 F0.0 BI0.0 BW0.0 V S"), "valid");
  EXPECT_THAT(one_rank("L0 F0.0 BW0.0 BI0.0 V S"), HasSubstr("its input part did not run"));
  EXPECT_THAT(one_rank("L0 F0.0 BI0.0 V S"), HasSubstr("has not computed everything"));
  EXPECT_THAT(one_rank("L0 F0.0 BI0.0 BW0.0 BW0.0 V S"), HasSubstr("no further micro-batch"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 BW0.0 V S"), HasSubstr("no further micro-batch"));
  EXPECT_THAT(verdict("schedule forward micro_batches=1 owners=0\nrank 0: L0 F0.0 BW0.0 V"),
              HasSubstr("no backward"));
}

TEST(ValidateSchedule, WantsWeightPartsInTheOrderOfMicroBatches) {
  const auto after_both = [](const std::string& backwards) {
    return verdict("schedule split micro_batches=2 owners=0\nrank 0: L0 F0.0 L1 F0.1 " + backwards +
                   " V S");
  };
  EXPECT_EQ(after_both("BI0.0 BI0.1 BW0.0 BW0.1"), "valid");
  EXPECT_EQ(after_both("BI0.0 BW0.0 B0.1"), "valid");
  EXPECT_THAT(after_both("BI0.0 BI0.1 BW0.1 BW0.0"), HasSubstr("micro-batch 0 is next"));
  EXPECT_THAT(after_both("BI0.0 B0.1 BW0.0"), HasSubstr("of micro-batch 0 is not done yet"));
}

TEST(ValidateSchedule, FindsDeadlock) {
  EXPECT_THAT(two_ranks("L0 ST0 RG0.0 F0.0 B0.0 SA0.0 V S", kSecond),
              HasSubstr("deadlock: it waits for its gradients"));
}

TEST(ValidateSchedule, WantsEachReceivePosted) {
  EXPECT_THAT(two_ranks(kFirst, "RT0 F1.0 RA1.0 B1.0 SG1.0 V S"),
              HasSubstr("no receive of its activations is posted"));
  EXPECT_THAT(two_ranks(kFirst, "RA1.0 F1.0 B1.0 SG1.0 V S"),
              HasSubstr("no receive of its targets is posted"));
}

TEST(ValidateSchedule, WantsNothingLeftOver) {
  EXPECT_THAT(verdict("schedule forward micro_batches=1 owners=0,1\n"
                      "rank 0: L0 ST0 RG0.0 F0.0 SA0.0 V\nrank 1: RT0 RA1.0 F1.0 V"),
              HasSubstr("never consumed"));
}

TEST(ValidateSchedule, WantsBothOrNoneToSumTiedGradients) {
  EXPECT_EQ(two_ranks("L0 ST0 RG0.0 F0.0 SA0.0 B0.0 T V S", "RT0 RA1.0 F1.0 B1.0 SG1.0 T V S"),
            "valid");
  EXPECT_THAT(two_ranks("L0 ST0 RG0.0 F0.0 SA0.0 B0.0 T V S", kSecond), HasSubstr("deadlock"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 T V S"), HasSubstr("tied parameters are on one rank"));
}

// Two micro-batches on two replicas of the only chunk.
std::string two_replicas(const std::string& first, const std::string& second) {
  return verdict("schedule 1f1b micro_batches=2 owners=0:1\nrank 0: " + first +
                 "\nrank 1: " + second);
}

TEST(ValidateSchedule, WantsEachReplicaToSumOnceAfterItsLastBackward) {
  const std::string good = "L1 F0.1 B0.1 R0 V S";
  EXPECT_EQ(two_replicas("L0 F0.0 B0.0 R0 V S", good), "valid");
  EXPECT_THAT(two_replicas("L0 F0.0 B0.0 V S", good), HasSubstr("has not computed everything"));
  EXPECT_THAT(two_replicas("L0 F0.0 R0 B0.0 V S", good),
              HasSubstr("not computed all of the chunk"));
  EXPECT_THAT(two_replicas("L0 F0.0 BI0.0 R0 BW0.0 V S", good),
              HasSubstr("not computed all of the chunk"));
  EXPECT_THAT(two_replicas("L0 F0.0 B0.0 R0 R0 V S", good), HasSubstr("summed twice"));
  EXPECT_THAT(two_replicas("L0 F0.1 B0.0 R0 V S", good), HasSubstr("is another rank's"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 R0 V S"), HasSubstr("the chunk is on one rank"));
  EXPECT_THAT(verdict("schedule forward micro_batches=2 owners=0:1\nrank 0: L0 F0.0 R0 V\n"
                      "rank 1: L1 F0.1 R0 V"),
              HasSubstr("no gradients"));
}

TEST(ValidateSchedule, RefusesImpossibleHeadersWithoutSizingMemoryByThem) {
  EXPECT_THAT(verdict("schedule 1f1b micro_batches=2000000000 owners=0\nrank 0: L0"),
              HasSubstr("bad schedule word 'micro_batches=2000000000'"));
  EXPECT_THAT(verdict("schedule 1f1b micro_batches=1 owners=3\nrank 0: L0"),
              HasSubstr("rank 3, which does not exist"));
  EXPECT_THAT(one_rank("L7 F0.0 B0.0 V S"), HasSubstr("no such micro-batch"));
  EXPECT_THAT(one_rank("L0 F5.0 B0.0 V S"), HasSubstr("no such chunk"));
}

// Picks a place in a schedule that has one.
std::pair<std::size_t, std::size_t> random_place(const Schedule& schedule) {
  const auto rank = *rc::gen::inRange<std::size_t>(0, schedule.ranks.size());
  return {rank, *rc::gen::inRange<std::size_t>(0, schedule.ranks[rank].size())};
}

RC_GTEST_PROP(ValidateSchedule, RejectsADroppedAction, ()) {
  Schedule schedule = random_schedule(random_input());
  const auto [rank, at] = random_place(schedule);
  auto& actions = schedule.ranks[rank];
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at));
  RC_ASSERT(!validate_schedule(schedule).ok());
}

RC_GTEST_PROP(ValidateSchedule, RejectsADuplicatedAction, ()) {
  Schedule schedule = random_schedule(random_input());
  const auto [rank, at] = random_place(schedule);
  auto& actions = schedule.ranks[rank];
  const auto to = *rc::gen::inRange<std::size_t>(0, actions.size() + 1);
  actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(to), Action(actions[at]));
  RC_ASSERT(!validate_schedule(schedule).ok());
}

RC_GTEST_PROP(ValidateSchedule, RejectsAnActionOnAnotherRank, ()) {
  Schedule schedule = random_schedule(random_input(2));
  const auto [rank, at] = random_place(schedule);
  auto& other = schedule.ranks[(rank + 1) % schedule.ranks.size()];
  auto& actions = schedule.ranks[rank];
  other.insert(other.begin(), actions[at]);
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at));
  RC_ASSERT(!validate_schedule(schedule).ok());
}

RC_GTEST_PROP(ValidateSchedule, RejectsSwappedMicroBatches, ()) {
  const ScheduleInput input = random_input(1, 2);
  Schedule schedule = random_schedule(input);
  const ChunkId chunk{*rc::gen::inRange(0, static_cast<int>(input.owners.size()))};
  const Rank rank = schedule.owner(chunk, MicroId{0});
  auto& actions = schedule.ranks[rank.index()];
  std::vector<std::size_t> forwards;  // places of those of the chunk
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].kind == ActionKind::kForward && actions[i].chunk == chunk) forwards.push_back(i);
  }
  RC_PRE(forwards.size() > 1);
  const auto first = *rc::gen::inRange<std::size_t>(0, forwards.size() - 1);
  std::swap(actions[forwards[first]], actions[forwards[first + 1]]);
  RC_ASSERT(!validate_schedule(schedule).ok());
}

}  // namespace
}  // namespace motley
