// Schedules of rounds of local training: all-reduces within islands, and the end of a round.
#include <algorithm>
#include <utility>

#include <gmock/gmock.h>

#include "pipeline/schedule/validate.h"
#include "tests/pipeline/schedule_fixtures.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string problem_of(const std::string& first, const std::string& second) {
  const auto schedule =
      parse_schedule("schedule 1f1b micro_batches=2 owners=0:1 islands=0,1\nrank 0: " + first +
                         "\nrank 1: " + second,
                     "s");
  if (!schedule.ok()) return schedule.error().what;
  const auto stats = validate_schedule(*schedule, /*tied_across_ranks=*/false);
  return stats.ok() ? "valid" : stats.error().what;
}

constexpr const char* kFirst = "L0 F0.0 B0.0 V S";
constexpr const char* kSecond = "L1 F0.1 B0.1 V S";

TEST(Islands, EndAStepWithOrWithoutARound) {
  const std::string first = kFirst;
  const std::string second = kSecond;
  EXPECT_EQ(problem_of(first, second), "valid");
  EXPECT_EQ(problem_of(first + " O A", second + " O A"), "valid");
  EXPECT_THAT(problem_of(first + " O A", second), HasSubstr("deadlock"));
  EXPECT_THAT(problem_of(first + " O A", second + " O"), HasSubstr("does not end the step"));
  EXPECT_THAT(problem_of(first + " A O", second + " O A"),
              HasSubstr("not directly after the update"));
  EXPECT_THAT(problem_of(first + " O A A", second + " O A"), HasSubstr("adopted twice"));
  EXPECT_THAT(problem_of(first + " O O A", second + " O A"),
              HasSubstr("not directly after the update"));
  EXPECT_THAT(problem_of("L0 F0.0 B0.0 V O S A", second + " O A"),
              HasSubstr("not directly after the update"));
}

// The offer of one step may be adopted in a later one.
TEST(Islands, OfferAndAdoptInDifferentSteps) {
  const std::string first = kFirst;
  const std::string second = kSecond;
  EXPECT_EQ(problem_of(first + " O", second + " O"), "valid");
  EXPECT_EQ(problem_of(first + " A", second + " A"), "valid");
  EXPECT_THAT(problem_of(first + " O", second + " A"), HasSubstr("does not end the step"));
  EXPECT_THAT(problem_of(first + " O", second), HasSubstr("does not end the step"));
  EXPECT_THAT(problem_of(first, second + " A"), HasSubstr("does not end the step"));
  EXPECT_THAT(problem_of("L0 F0.0 B0.0 V A S", second + " A"),
              HasSubstr("not directly after the update"));
}

TEST(Islands, DoNotReduceWithEachOther) {
  EXPECT_THAT(problem_of("L0 F0.0 B0.0 R0 V S", "L1 F0.1 B0.1 R0 V S"),
              HasSubstr("the chunk is on one rank"));
}

TEST(Islands, AreNeededForTheEndOfARound) {
  const auto schedule =
      parse_schedule("schedule 1f1b micro_batches=1 owners=0\nrank 0: L0 F0.0 B0.0 V S O A", "s");
  ASSERT_TRUE(schedule.ok());
  const auto stats = validate_schedule(*schedule, false);
  ASSERT_FALSE(stats.ok());
  EXPECT_THAT(stats.error().what, HasSubstr("there are no islands"));
}

TEST(Islands, HaveTheGroupsOfTheirRanks) {
  Schedule schedule;
  schedule.owners = {{Rank{0}, Rank{1}, Rank{2}}, {Rank{0}, Rank{3}, Rank{3}}};
  schedule.ranks.resize(4);
  EXPECT_THAT(schedule.reduce_groups(ChunkId{0}),
              ElementsAre(ElementsAre(Rank{0}, Rank{1}, Rank{2})));
  schedule.islands = {{Rank{0}}, {Rank{1}, Rank{2}, Rank{3}}};
  EXPECT_THAT(schedule.reduce_groups(ChunkId{0}), ElementsAre(ElementsAre(Rank{1}, Rank{2})));
  EXPECT_TRUE(schedule.reduce_groups(ChunkId{1}).empty());
  EXPECT_THAT(schedule.tied_groups(), ElementsAre(ElementsAre(Rank{1}, Rank{2}, Rank{3})));
}

// The start island has all micro-batches, divided like its own.
TEST(Islands, GiveTheStartToOne) {
  Plan plan;
  plan.micro_batches = 7;
  plan.ranks.resize(4);
  ChunkPlan first;
  first.replicas = {{Rank{0}, 4}, {Rank{1}, 1}, {Rank{2}, 2}};
  ChunkPlan last;
  last.replicas = {{Rank{0}, 4}, {Rank{3}, 3}};
  plan.chunks = {first, last};
  plan.rounds = RoundsPlan{.islands = {{Rank{0}}, {Rank{1}, Rank{2}, Rank{3}}}, .start_island = 1};
  const Plan start = plan_of_start(plan);
  const auto shares = [&](std::size_t chunk) {
    std::vector<std::pair<int, int>> found;
    for (const Replica& replica : start.chunks[chunk].replicas) {
      found.emplace_back(replica.rank.value, replica.micro_batches);
    }
    return found;
  };
  EXPECT_THAT(shares(0), ElementsAre(std::pair(1, 2), std::pair(2, 5)));
  EXPECT_THAT(shares(1), ElementsAre(std::pair(3, 7)));
}

// Islands of one to three ranks, each with all chunks; a rank may have none.
ScheduleInput random_islands() {
  ScheduleInput input;
  const int islands = *rc::gen::inRange(2, 4);
  const int chunks = *rc::gen::inRange(1, 4);
  input.owners.resize(static_cast<std::size_t>(chunks));
  for (int i = 0; i < islands; ++i) {
    const int ranks = *rc::gen::inRange(1, 4);
    std::vector<Rank>& island = input.islands.emplace_back();
    for (int r = 0; r < ranks; ++r) island.push_back({input.rank_count + r});
    const int micros = *rc::gen::inRange(1, 4);
    for (auto& owners : input.owners) {
      for (int m = 0; m < micros; ++m) {
        owners.push_back({input.rank_count + *rc::gen::inRange(0, ranks)});
      }
    }
    input.rank_count += ranks;
    input.micro_batches += micros;
  }
  input.micro_batches = static_cast<int>(input.owners.front().size());
  const Schedule ends{"", input.micro_batches, input.owners, {}};
  input.tied_across_ranks = ends.end_ranks().size() > 1 && *rc::gen::arbitrary<bool>();
  input.offers = *rc::gen::arbitrary<bool>();
  input.adopts = *rc::gen::arbitrary<bool>();
  return input;
}

RC_GTEST_PROP(Islands, HaveValidSchedulesOfEveryKind, ()) {
  const ScheduleInput input = random_islands();
  for (const ScheduleFacts& facts : kSchedules) {
    const Schedule schedule = generate_schedule(facts.kind, input);
    const auto stats = validate_schedule(schedule, input.tied_across_ranks);
    if (!stats.ok()) RC_FAIL(describe(stats.error()));
    const auto parsed = parse_schedule(to_text(schedule), "s");
    RC_ASSERT(parsed.ok());
    RC_ASSERT(*parsed == schedule);
    for (const std::vector<Action>& actions : schedule.ranks) {
      const auto count = [&](ActionKind kind) {
        return std::ranges::count(actions, kind, &Action::kind);
      };
      RC_ASSERT(count(ActionKind::kStep) == 1);
      RC_ASSERT(count(ActionKind::kOffer) == (input.offers ? 1 : 0));
      RC_ASSERT(count(ActionKind::kAdopt) == (input.adopts ? 1 : 0));
    }
  }
}

// A dropped action of any rank is noticed.
RC_GTEST_PROP(Islands, NoticeAMissingAction, ()) {
  const ScheduleInput input = random_islands();
  Schedule schedule = generate_schedule(ScheduleKind::kOneFOneB, input);
  std::vector<Action>& actions =
      schedule.ranks[*rc::gen::inRange<std::size_t>(0, schedule.ranks.size())];
  const auto at = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, actions.size()));
  actions.erase(actions.begin() + at);
  RC_ASSERT(!validate_schedule(schedule, input.tied_across_ranks).ok());
}

}  // namespace
}  // namespace motley
