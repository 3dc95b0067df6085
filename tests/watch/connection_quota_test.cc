#include "watch/http/connection_quota.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

class CountedConnection : public LimitedConnection {
 public:
  void leave() override { has_left_ = true; }

  bool has_left_ = false;
};

class ConnectionPlacesTest : public testing::Test {
 protected:
  std::shared_ptr<CountedConnection> enters() {
    auto connection = std::make_shared<CountedConnection>();
    places_.enter(connection);
    return connection;
  }

  ConnectionQuota places_{2, 3};
};

TEST_F(ConnectionPlacesTest, TheOldestStrangerGivesWay) {
  const auto first = enters();
  const auto second = enters();
  const auto third = enters();
  EXPECT_FALSE(first->has_left_);
  const auto fourth = enters();
  EXPECT_TRUE(first->has_left_);
  EXPECT_FALSE(second->has_left_);
  EXPECT_FALSE(fourth->has_left_);
}

TEST_F(ConnectionPlacesTest, WhoHasShownTheTokenNeverGivesWay) {
  const auto owner = enters();
  EXPECT_TRUE(places_.admit(owner));
  for (int i = 0; i < 100; ++i) enters();
  std::vector<std::shared_ptr<CountedConnection>> held;
  for (int i = 0; i < 100; ++i) held.push_back(enters());
  EXPECT_FALSE(owner->has_left_);
  EXPECT_TRUE(places_.admit(owner));  // at its next request
}

TEST_F(ConnectionPlacesTest, ThereAreOnlySoManyPlacesAndTheyBecomeFree) {
  const auto one = enters();
  auto other = enters();
  EXPECT_TRUE(places_.admit(one));
  EXPECT_TRUE(places_.admit(other));
  const auto third = enters();
  EXPECT_FALSE(places_.admit(third));
  EXPECT_TRUE(places_.admit(one));
  other.reset();
  EXPECT_TRUE(places_.admit(third));
}

TEST_F(ConnectionPlacesTest, StrangersWhoLeftTakeNoPlace) {
  const auto first = enters();
  for (int i = 0; i < 100; ++i) enters();
  EXPECT_FALSE(first->has_left_);
}

}  // namespace
}  // namespace motley
