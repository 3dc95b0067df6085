// Messages about peers that a rank cannot connect to.
#include "protocol/link_message.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

const std::vector<UnreachedPeer> kPeers = {
    {Rank{2}, "10.0.0.2:40123", LinkState::kSilent, "", 4.5},
    {Rank{0}, "[fe80::1]:7", LinkState::kRefused, "Connection refused", 1},
    {Rank{1}, "10.0.0.1:1", LinkState::kNoRoute, "No route to host", 0},
    {Rank{3}, "10.0.0.3:1", LinkState::kAnswers, "", 60}};

TEST(UnreachedEvent, ReadsBack) {
  const auto read = read_unreached_event(unreached_event(kPeers), "a rank");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(*read, kPeers);
  EXPECT_TRUE(read_unreached_event(unreached_event({}), "a rank")->empty());
}

TEST(UnreachedEvent, IsRefusedWhereItMakesNoSense) {
  const auto is_refused = [](const char* key, const Json& value) {
    Json event = unreached_event(kPeers);
    event["peers"][1][key] = value;
    return !read_unreached_event(event, "a rank").ok();
  };
  EXPECT_TRUE(is_refused("rank", -1));
  EXPECT_TRUE(is_refused("rank", 5'000'000'000));
  EXPECT_TRUE(is_refused("state", "sulking"));
  EXPECT_TRUE(is_refused("since_s", -1));
  EXPECT_TRUE(is_refused("address", 7));
  EXPECT_FALSE(read_unreached_event({{"event", "unreached"}}, "a rank").ok());
}

}  // namespace
}  // namespace motley
