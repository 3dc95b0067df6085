#include "plan/schedule_facts.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;

TEST(ScheduleFacts, AreFoundByKindAndName) {
  for (const ScheduleFacts& each : kSchedules) {
    EXPECT_EQ(&schedule_facts(each.kind), &each);
    EXPECT_EQ(find_schedule(each.name), &each);
  }
  EXPECT_EQ(find_schedule("auto"), nullptr);
  EXPECT_EQ(find_schedule(""), nullptr);
}

TEST(ScheduleFacts, HaveTheOrderOfTheDocumentation) {
  EXPECT_THAT(schedule_names(), ElementsAre(StrEq("gpipe"), StrEq("1f1b"), StrEq("split")));
  EXPECT_THAT(schedule_choices(),
              ElementsAre(StrEq("auto"), StrEq("gpipe"), StrEq("1f1b"), StrEq("split")));
}

// A search takes candidates of a schedule that has its own, and limits them in the same way.
TEST(ScheduleFacts, AreSearchedAsASimplerScheduleOrThemselves) {
  for (const ScheduleFacts& each : kSchedules) {
    const ScheduleFacts& searched = schedule_facts(each.searched_as);
    EXPECT_EQ(searched.searched_as, searched.kind) << each.name;
    EXPECT_LE(searched.complexity, each.complexity) << each.name;
    EXPECT_EQ(searched.limits_in_flight, each.limits_in_flight) << each.name;
    EXPECT_GE(each.warm_up_max, 1) << each.name;
  }
}

TEST(ScheduleFacts, AreAllPermittedByAuto) {
  for (const ScheduleFacts& each : kSchedules) {
    EXPECT_TRUE(permits_schedule("auto", each.kind));
    EXPECT_TRUE(permits_schedule(each.name, each.kind));
    for (const ScheduleFacts& other : kSchedules) {
      EXPECT_EQ(permits_schedule(other.name, each.kind), other.kind == each.kind);
    }
  }
}

}  // namespace
}  // namespace motley
