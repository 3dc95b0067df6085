#include "comm/make_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/transport/network_interface.h"
#include "comm/transport/transport.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TransportOptions two_ranks(const std::string& kind) {
  return options_for(kind, Rank{0}, 2);
}

TEST(MakeTransport, NamesWhatThisBuildHas) {
  const auto transport = make_transport(two_ranks("pigeon"));
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, ErrorCode::kConfig);
  EXPECT_THAT(transport.error().what, HasSubstr("'pigeon'"));
  for (const auto& kind : transport_kinds()) {
    EXPECT_THAT(transport.error().cause, HasSubstr(kind));
  }
}

TEST(MakeTransport, TakesTheOneThatKeepsASecret) {
  auto options = two_ranks("tls");
  options.kind = "auto";
  const auto transport = make_transport(options);
  ASSERT_TRUE(transport.ok()) << describe(transport.error());
  EXPECT_THAT((*transport)->address(), testing::StartsWith("tls:127.0.0.1:"));
}

TEST(MakeTransport, RefusesOneThatCannotKeepASecret) {
  for (const std::string& kind : transport_kinds()) {
    if (kind == "tcp") continue;
    auto options = two_ranks("tls");
    options.kind = kind;
    const auto transport = make_transport(options);
    ASSERT_FALSE(transport.ok()) << kind;
    EXPECT_EQ(transport.error().code, ErrorCode::kConfig);
    EXPECT_THAT(transport.error().what, HasSubstr(kind + " cannot encrypt"));
  }
}

class EveryKind : public testing::TestWithParam<std::string> {};

TEST_P(EveryKind, RefusesAnAddressThatThisMachineLacks) {
  auto options = two_ranks(GetParam());
  options.bind_address = "192.0.2.1";  // reserved for documentation
  const auto transport = make_transport(options);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, ErrorCode::kPeer);
  EXPECT_THAT(transport.error().what, HasSubstr("192.0.2.1"));
}

TEST_P(EveryKind, RefusesTheAddressOfAnotherKind) {
  auto transport = make_transport(two_ranks(GetParam()));
  ASSERT_TRUE(transport.ok());
  for (const std::string text : {"", "inproc:1", "ucx:", "ucx:0", "gloo:/", "gloo:zz/zz/",
                                 "tcp:", "tcp:127.0.0.1:99999", "tls:[::1:7", "tls:box:7"}) {
    auto fresh = make_transport(two_ranks(GetParam()));
    ASSERT_TRUE(fresh.ok());
    const auto connected = (*fresh)->connect({(*fresh)->address(), text}, soon());
    ASSERT_FALSE(connected.ok()) << text;
    EXPECT_EQ(connected.error().code, ErrorCode::kPeer);
    EXPECT_THAT(connected.error().what, HasSubstr("rank 1"));
  }
}

TEST_P(EveryKind, NamesARankThatDoesNotConnect) {
  auto absent_options = two_ranks(GetParam());
  absent_options.rank = Rank{1};
  auto transport = make_transport(two_ranks(GetParam()));
  ASSERT_TRUE(transport.ok());
  std::string absent_address;
  {
    auto absent = make_transport(absent_options);
    ASSERT_TRUE(absent.ok());
    absent_address = (*absent)->address();
  }
  const auto connected =
      (*transport)->connect({(*transport)->address(), absent_address}, Deadline::after_s(0.5));
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.error().code, ErrorCode::kPeer);
  EXPECT_THAT(connected.error().what, HasSubstr("cannot connect to rank 1"));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         EveryKind,
                         testing::ValuesIn(network_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(NetworkInterface, FindsTheLoopback) {
  const auto by_default = interface_of("");
  ASSERT_TRUE(by_default.ok()) << describe(by_default.error());
  EXPECT_EQ(*by_default, *interface_of("127.0.0.1"));
}

TEST(NetworkInterface, ListsWhatTheMachineHas) {
  const auto none = interface_of("no address");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().cause, HasSubstr("127.0.0.1"));
}

TEST(NetworkInterface, TellsTheWayToAPeer) {
  const auto here = source_address_to("127.0.0.1");
  ASSERT_TRUE(here.ok()) << describe(here.error());
  EXPECT_EQ(*here, "127.0.0.1");
}

TEST(NetworkInterface, KnowsNoWayToWhatIsNoAddress) {
  const auto nowhere = source_address_to("box.local");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, ErrorCode::kPeer);
}

}  // namespace
}  // namespace motley
