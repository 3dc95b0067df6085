#include "pipeline/schedule/process_group.h"

#include <array>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Ranks 0 and 2 on "a", 1 on "b", 3 on "c".
Plan plan_with_links(std::int64_t a, std::int64_t b, std::int64_t c) {
  Plan plan;
  plan.ranks.resize(4);
  const auto seat = [&](std::size_t rank, const char* machine, std::int64_t link_mbps) {
    plan.ranks[rank].machine = machine;
    plan.ranks[rank].link_mbps = link_mbps;
  };
  seat(0, "a", a);
  seat(1, "b", b);
  seat(2, "a", a);
  seat(3, "c", c);
  return plan;
}

constexpr std::array kAll = {Rank{0}, Rank{1}, Rank{2}, Rank{3}};

TEST(ProcessGroup, GathersRanksAndSpeedsByMachine) {
  const ProcessGroup group = process_group(plan_with_links(1000, 100, 20), kAll);
  EXPECT_THAT(group.machines, ElementsAre(ElementsAre(Rank{0}, Rank{2}), ElementsAre(Rank{1}),
                                          ElementsAre(Rank{3})));
  EXPECT_THAT(group.link_speeds, ElementsAre(1000, 100, 20));
}

TEST(ProcessGroup, OfSomeRanksHasTheirMachinesOnly) {
  constexpr std::array kSome = {Rank{1}, Rank{2}};
  const ProcessGroup group = process_group(plan_with_links(1000, 100, 20), kSome);
  EXPECT_THAT(group.machines, ElementsAre(ElementsAre(Rank{1}), ElementsAre(Rank{2})));
  EXPECT_THAT(group.link_speeds, ElementsAre(100, 1000));
}

TEST(ProcessGroup, HasNoSpeedsWhereOneIsUnknown) {
  const ProcessGroup group = process_group(plan_with_links(1000, 0, 20), kAll);
  EXPECT_EQ(group.machines.size(), 3U);
  EXPECT_THAT(group.link_speeds, IsEmpty());
}

}  // namespace
}  // namespace motley
