#include "comm/transport/network_interface.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(NetworkInterfaces, HoldTheLoopbackWithItsKind) {
  const auto interfaces = network_interfaces();
  ASSERT_TRUE(interfaces.ok()) << describe(interfaces.error());
  const auto loopback =
      std::ranges::find(*interfaces, std::string("127.0.0.1"), &NetworkInterface::address);
  ASSERT_NE(loopback, interfaces->end());
  EXPECT_EQ(loopback->kind, "loopback");
  EXPECT_TRUE(loopback->is_up);
  EXPECT_EQ(loopback->name, *interface_of("127.0.0.1"));
}

TEST(NetworkInterfaces, HaveAnAddressEach) {
  const auto interfaces = network_interfaces();
  ASSERT_TRUE(interfaces.ok()) << describe(interfaces.error());
  for (const NetworkInterface& each : *interfaces) {
    EXPECT_FALSE(each.name.empty());
    EXPECT_FALSE(each.address.empty()) << each.name;
    EXPECT_GE(each.mbps, 0) << each.name;
  }
}

}  // namespace
}  // namespace motley
