#include <cstdint>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "cli/launch/invitation.h"

namespace motley {
namespace {

Result<ListenPlace> place_of(const std::string& text) {
  const CommandSpec spec{.name = "launch", .options = invite_options()};
  const auto arguments = parse_arguments(spec, {"--listen", text});
  EXPECT_TRUE(arguments.ok()) << describe(arguments.error());
  return listen_place(*arguments);
}

// A ticket names addresses that other machines can reach; these two are none.
TEST(ListenPlace, OfAllAddressesNamesNone) {
  using Case = std::tuple<std::string, std::string, std::uint16_t>;
  for (const auto& [text, address, port] : {Case{"40100", "", 40100},
                                            {"0.0.0.0:40100", "", 40100},
                                            {"[::]:40100", "", 40100},
                                            {"10.0.0.1:40100", "10.0.0.1", 40100},
                                            {"[fd00::1]:40100", "fd00::1", 40100}}) {
    const auto place = place_of(text);
    ASSERT_TRUE(place.ok()) << text;
    EXPECT_EQ(place->address, address) << text;
    EXPECT_EQ(place->port, port) << text;
  }
}

TEST(ListenPlace, IsRefusedWithoutAPort) {
  for (const char* text : {"box", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1:99999"}) {
    EXPECT_FALSE(place_of(text).ok()) << text;
  }
}

}  // namespace
}  // namespace motley
