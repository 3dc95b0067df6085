
#include "pipeline/schedule/validate.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/pipeline/schedule_fixtures.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string check_result(const std::string& text, bool tied_across_ranks = false) {
  const auto schedule = parse_schedule(text, "s");
  if (!schedule.ok()) return schedule.error().what;
  const auto stats = validate_schedule(*schedule, tied_across_ranks);
  return stats.ok() ? "valid" : stats.error().what;
}

std::string one_rank(const std::string& actions) {
  return check_result("schedule 1f1b micro_batches=1 owners=0\nrank 0: " + actions);
}

std::string two_ranks(const std::string& first,
                      const std::string& second,
                      bool tied_across_ranks = false) {
  return check_result(
      "schedule 1f1b micro_batches=1 owners=0,1\nrank 0: " + first + "\nrank 1: " + second,
      tied_across_ranks);
}

constexpr const char* kFirst = "L0 ST0 F0.0 SA0.0 RG0.0 B0.0 V S";
constexpr const char* kSecond = "RT0 RA1.0 F1.0 B1.0 SG1.0 V S";

TEST(ValidateSchedule, AcceptsTheSmallest) {
  EXPECT_EQ(one_rank("L0 F0.0 B0.0 V S"), "valid");
  EXPECT_EQ(two_ranks(kFirst, kSecond), "valid");
}

TEST(ValidateSchedule, NamesTheOffendingAction) {
  EXPECT_EQ(one_rank("F0.0 L0 B0.0 V S"),
            "schedule '1f1b' is invalid: rank 0, action 0 (F0.0): the micro-batch is not loaded");
}

TEST(ValidateSchedule, WantsVoteAndUpdateLastAndOnce) {
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 S V"), HasSubstr("before the vote"));
  EXPECT_THAT(one_rank("L0 F0.0 V B0.0 S"),
              HasSubstr("the backward of micro-batch 0 in chunk 0 is missing"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 V"), HasSubstr("does not update"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 V S S"), HasSubstr("may follow the update"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 V V S"), HasSubstr("may follow the vote"));
}

TEST(ValidateSchedule, WantsEachWeightPartOnceAfterItsInputPart) {
  EXPECT_EQ(one_rank("L0 F0.0 BI0.0 BW0.0 V S"), "valid");
  EXPECT_THAT(one_rank("L0 F0.0 BW0.0 BI0.0 V S"), HasSubstr("its input part did not run"));
  EXPECT_THAT(one_rank("L0 F0.0 BI0.0 V S"),
              HasSubstr("the weight part of micro-batch 0 in chunk 0 is missing"));
  EXPECT_THAT(one_rank("L0 F0.0 BI0.0 BW0.0 BW0.0 V S"), HasSubstr("no further micro-batch"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 BW0.0 V S"), HasSubstr("no further micro-batch"));
  EXPECT_THAT(check_result("schedule forward micro_batches=1 owners=0\nrank 0: L0 F0.0 BW0.0 V"),
              HasSubstr("no backward"));
}

TEST(ValidateSchedule, WantsWeightPartsInTheOrderOfMicroBatches) {
  const auto after_both = [](const std::string& backwards) {
    return check_result("schedule split micro_batches=2 owners=0\nrank 0: L0 F0.0 L1 F0.1 " +
                        backwards + " V S");
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
  EXPECT_THAT(check_result("schedule forward micro_batches=1 owners=0,1\n"
                           "rank 0: L0 ST0 RG0.0 F0.0 SA0.0 V\nrank 1: RT0 RA1.0 F1.0 V"),
              HasSubstr("never consumed"));
}

TEST(ValidateSchedule, WantsAllHoldersToSumATiedGradientOnce) {
  const std::string first = "L0 ST0 RG0.0 F0.0 SA0.0 B0.0";
  const std::string second = "RT0 RA1.0 F1.0 B1.0 SG1.0";
  const auto tied = [&](const std::string& rank0, const std::string& rank1) {
    return two_ranks(rank0, rank1, /*tied_across_ranks=*/true);
  };
  EXPECT_EQ(tied(first + " T V S", second + " T V S"), "valid");
  EXPECT_THAT(tied(first + " T V S", second + " V S"),
              HasSubstr("the all-reduce of the tied gradients is missing"));
  EXPECT_THAT(tied(first + " V S", second + " V S"),
              HasSubstr("the all-reduce of the tied gradients is missing"));
  EXPECT_THAT(tied(first + " T T V S", second + " T V S"), HasSubstr("all-reduced twice"));
  EXPECT_THAT(two_ranks(first + " T V S", second + " T V S"),
              HasSubstr("no tied parameter is on several ranks"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 T V S"), HasSubstr("tied parameters are on one rank"));
}

// The contribution of chunk 0 is final after its input part, that of the last chunk after its
// weight part.
TEST(ValidateSchedule, WantsATiedGradientSummedWhenItIsFinal) {
  const auto tied = [](const std::string& of_first, const std::string& of_last) {
    return two_ranks("L0 ST0 RG0.0 F0.0 SA0.0 " + of_first + " V S",
                     "RT0 RA1.0 F1.0 " + of_last + " V S", /*tied_across_ranks=*/true);
  };
  EXPECT_EQ(tied("BI0.0 T BW0.0", "BI1.0 SG1.0 BW1.0 T"), "valid");
  EXPECT_THAT(tied("T BI0.0 BW0.0", "BI1.0 SG1.0 BW1.0 T"),
              HasSubstr("not computed all contributions to the tied gradient"));
  EXPECT_THAT(tied("BI0.0 T BW0.0", "BI1.0 SG1.0 T BW1.0"),
              HasSubstr("not computed all contributions to the tied gradient"));
}

// These all-reduces would never become ready, and ranks would wait for them forever.
TEST(ValidateSchedule, WantsNoSumsInAForwardSchedule) {
  EXPECT_THAT(check_result("schedule forward micro_batches=1 owners=0,1\n"
                           "rank 0: L0 ST0 F0.0 SA0.0 T V\nrank 1: RT0 RA1.0 F1.0 T V",
                           /*tied_across_ranks=*/true),
              HasSubstr("a forward schedule has no gradients"));
}

// Any later position is valid: the value is stored until it is sent.
TEST(ValidateSchedule, LetsSendsComeLater) {
  const auto forward = [](const std::string& first) {
    return check_result("schedule forward micro_batches=2 owners=0,1\nrank 0: " + first +
                        " V\nrank 1: RT0 RA1.0 RT1 RA1.1 F1.0 F1.1 V");
  };
  EXPECT_EQ(forward("L0 L1 ST1 ST0 F0.0 F0.1 SA0.1 SA0.0"), "valid");
  EXPECT_THAT(forward("ST0 L0 L1 ST1 F0.0 SA0.0 F0.1 SA0.1"), HasSubstr("is not loaded"));
  EXPECT_THAT(forward("L0 ST0 L1 ST1 SA0.0 F0.0 F0.1 SA0.1"), HasSubstr("forward did not run"));
  EXPECT_THAT(forward("L0 ST0 L1 ST1 F0.0 SA0.0 SA0.0 F0.1 SA0.1"), HasSubstr("sent twice"));
}

TEST(ValidateSchedule, CountsWhatIsKeptForOtherRanks) {
  const auto peak = [](const std::string& first) {
    const auto schedule =
        parse_schedule("schedule forward micro_batches=2 owners=0,1\nrank 0: " + first +
                           " V\nrank 1: RT0 RA1.0 RT1 RA1.1 F1.0 F1.1 V",
                       "s");
    return validate_schedule(*schedule, /*tied_across_ranks=*/false)->peak_unsent;
  };
  EXPECT_EQ(peak("L0 ST0 F0.0 SA0.0 L1 ST1 F0.1 SA0.1"), (std::vector<int>{1, 0}));
  EXPECT_EQ(peak("L0 L1 F0.0 F0.1 ST0 ST1 SA0.0 SA0.1"), (std::vector<int>{4, 0}));
}

// Two micro-batches on two replicas of the only chunk.
std::string two_replicas(const std::string& first, const std::string& second) {
  return check_result("schedule 1f1b micro_batches=2 owners=0:1\nrank 0: " + first +
                      "\nrank 1: " + second);
}

TEST(ValidateSchedule, WantsEachReplicaToSumOnceAfterItsLastBackward) {
  const std::string good = "L1 F0.1 B0.1 R0 V S";
  EXPECT_EQ(two_replicas("L0 F0.0 B0.0 R0 V S", good), "valid");
  EXPECT_THAT(two_replicas("L0 F0.0 B0.0 V S", good),
              HasSubstr("the all-reduce of chunk 0 over its replicas is missing"));
  EXPECT_THAT(two_replicas("L0 F0.0 R0 B0.0 V S", good),
              HasSubstr("not computed all of the chunk"));
  EXPECT_THAT(two_replicas("L0 F0.0 BI0.0 R0 BW0.0 V S", good),
              HasSubstr("not computed all of the chunk"));
  EXPECT_THAT(two_replicas("L0 F0.0 B0.0 R0 R0 V S", good), HasSubstr("all-reduced twice"));
  EXPECT_THAT(two_replicas("L0 F0.1 B0.0 R0 V S", good), HasSubstr("belongs to another rank"));
  EXPECT_THAT(one_rank("L0 F0.0 B0.0 R0 V S"), HasSubstr("the chunk is on one rank"));
  EXPECT_THAT(check_result("schedule forward micro_batches=2 owners=0:1\nrank 0: L0 F0.0 R0 V\n"
                           "rank 1: L1 F0.1 R0 V"),
              HasSubstr("no gradients"));
}

TEST(ValidateSchedule, RefusesImpossibleHeadersWithoutSizingMemoryByThem) {
  EXPECT_THAT(check_result("schedule 1f1b micro_batches=2000000000 owners=0\nrank 0: L0"),
              HasSubstr("bad schedule word 'micro_batches=2000000000'"));
  EXPECT_THAT(check_result("schedule 1f1b micro_batches=1 owners=3\nrank 0: L0"),
              HasSubstr("rank 3, which does not exist"));
  EXPECT_THAT(one_rank("L7 F0.0 B0.0 V S"), HasSubstr("the micro-batch does not exist"));
  EXPECT_THAT(one_rank("L0 F5.0 B0.0 V S"), HasSubstr("the chunk does not exist"));
}

// Selects a random position in a schedule that has one.
std::pair<std::size_t, std::size_t> random_place(const Schedule& schedule) {
  const auto rank = *rc::gen::inRange<std::size_t>(0, schedule.ranks.size());
  return {rank, *rc::gen::inRange<std::size_t>(0, schedule.ranks[rank].size())};
}

RC_GTEST_PROP(ValidateSchedule, RejectsADroppedAction, ()) {
  const ScheduleInput input = random_input();
  Schedule schedule = random_schedule(input);
  const auto [rank, at] = random_place(schedule);
  auto& actions = schedule.ranks[rank];
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at));
  RC_ASSERT(!validate_schedule(schedule, input.tied_across_ranks).ok());
}

RC_GTEST_PROP(ValidateSchedule, RejectsADuplicatedAction, ()) {
  const ScheduleInput input = random_input();
  Schedule schedule = random_schedule(input);
  const auto [rank, at] = random_place(schedule);
  auto& actions = schedule.ranks[rank];
  const auto to = *rc::gen::inRange<std::size_t>(0, actions.size() + 1);
  actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(to), Action(actions[at]));
  RC_ASSERT(!validate_schedule(schedule, input.tied_across_ranks).ok());
}

RC_GTEST_PROP(ValidateSchedule, RejectsAnActionOnAnotherRank, ()) {
  const ScheduleInput input = random_input(2);
  Schedule schedule = random_schedule(input);
  const auto [rank, at] = random_place(schedule);
  auto& other = schedule.ranks[(rank + 1) % schedule.ranks.size()];
  auto& actions = schedule.ranks[rank];
  other.insert(other.begin(), actions[at]);
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at));
  RC_ASSERT(!validate_schedule(schedule, input.tied_across_ranks).ok());
}

RC_GTEST_PROP(ValidateSchedule, RejectsSwappedMicroBatches, ()) {
  const ScheduleInput input = random_input(1, 2);
  Schedule schedule = random_schedule(input);
  const ChunkId chunk{*rc::gen::inRange(0, static_cast<int>(input.owners.size()))};
  const Rank rank = schedule.owner(chunk, MicroId{0});
  auto& actions = schedule.ranks[rank.index()];
  std::vector<std::size_t> forwards;  // positions of the chunk's forwards
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].kind == ActionKind::kForward && actions[i].chunk == chunk) forwards.push_back(i);
  }
  RC_PRE(forwards.size() > 1);
  const auto first = *rc::gen::inRange<std::size_t>(0, forwards.size() - 1);
  std::swap(actions[forwards[first]], actions[forwards[first + 1]]);
  RC_ASSERT(!validate_schedule(schedule, input.tied_across_ranks).ok());
}

}  // namespace
}  // namespace motley
