#include "cluster/launch/event_fields.h"

#include <limits>

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(EventFields, TakesQuantitiesAndIndexes) {
  const Json event = {{"s", 1.5}, {"rank", 2}};
  EXPECT_EQ(*event_quantity(event, "s", "rank 0"), 1.5);
  EXPECT_EQ(*event_index(event, "rank", 3, "rank 0"), 2U);
}

TEST(EventFields, RefusesWhatIsNoQuantity) {
  for (const double value :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const auto taken = event_quantity(Json::object({{"s", value}}), "s", "rank 7");
    ASSERT_FALSE(taken.ok()) << value;
    EXPECT_EQ(taken.error().code, ErrorCode::kPeer);
    EXPECT_NE(taken.error().what.find("rank 7"), std::string::npos);
  }
}

TEST(EventFields, RefusesAnIndexOutsideItsRange) {
  for (const int value : {-1, 3, 1'000'000'000}) {
    EXPECT_FALSE(event_index(Json::object({{"rank", value}}), "rank", 3, "rank 0").ok()) << value;
  }
}

TEST(EventFields, RefusesAMissingMember) {
  EXPECT_FALSE(event_quantity(Json::object(), "s", "rank 0").ok());
  EXPECT_FALSE(event_index(Json::object(), "rank", 3, "rank 0").ok());
}

}  // namespace
}  // namespace motley
