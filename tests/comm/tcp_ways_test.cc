// Ranks that can connect in one direction only, or not at all.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/owned_fd.h"
#include "comm/make_transport.h"
#include "comm/seeded_message.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::SizeIs;

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};

// Two ranks on different addresses, as on two machines.
class TwoRanks : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Transport> open(Rank rank) {
    TransportOptions options = options_for(GetParam(), rank, 2);
    options.bind_address = fmt::format("127.0.0.{}", rank.value + 1);
    auto made = make_transport(options, [this, rank](const std::vector<MissingPeer>& missing) {
      if (rank == kRank1 && !missing.empty()) missing_ = missing;
    });
    EXPECT_TRUE(made.ok()) << made.error().cause;
    return std::move(made).value();
  }

  // Rank 1 gets `address` as the address of rank 0.
  void expect_to_meet(const std::string& address, double later_s = 0) {
    const auto low = open(kRank0);
    const auto high = open(kRank1);
    const std::vector<std::string> addresses = {low->address(), high->address()};
    Result<void> met;
    const std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::duration<double>(later_s));
      const std::string scheme = low->address().substr(0, 4);
      met = high->connect({address.empty() ? low->address() : scheme + address, high->address()},
                          soon());
      if (!met.ok()) return;
      auto sent = high->send(kRank0, 1, message(1000, 7)).wait(soon(), "it is sent");
      EXPECT_TRUE(sent.ok());
      auto back = high->recv(kRank0, 2, Buffer(1000)).wait(soon(), "an answer");
      EXPECT_TRUE(back.ok());
    });
    const auto connected = low->connect(addresses, soon());
    ASSERT_TRUE(connected.ok()) << connected.error().what << connected.error().cause;
    EXPECT_TRUE(low->recv(kRank1, 1, Buffer(1000)).wait(soon(), "a message").ok());
    EXPECT_TRUE(low->send(kRank1, 2, message(1000, 8)).wait(soon(), "it is sent").ok());
  }

  std::vector<MissingPeer> missing_;  // as last reported by rank 1
};

TEST_P(TwoRanks, MeetWhereOnlyTheLowerOneCanConnect) {
  expect_to_meet("127.0.0.3:9");
  ASSERT_THAT(missing_, SizeIs(1));
  EXPECT_EQ(missing_[0].rank, kRank0);
  EXPECT_EQ(missing_[0].state, ConnectState::kRefused);
  EXPECT_EQ(missing_[0].address, "127.0.0.3:9");
}

// A port whose accept queue is full does not answer.
TEST_P(TwoRanks, MeetWhereTheHigherOneGetsNoAnswer) {
  const OwnedFd deaf(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  ASSERT_EQ(::inet_pton(AF_INET, "127.0.0.3", &place.sin_addr), 1);
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  ASSERT_EQ(::bind(deaf.get(), address, sizeof place), 0);
  ASSERT_EQ(::listen(deaf.get(), 0), 0);
  socklen_t bytes = sizeof place;
  ASSERT_EQ(::getsockname(deaf.get(), address, &bytes), 0);
  std::vector<OwnedFd> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)::connect(crowd.back().get(), address, sizeof place);
  }
  expect_to_meet(fmt::format("127.0.0.3:{}", ntohs(place.sin_port)));
  ASSERT_THAT(missing_, SizeIs(1));
  EXPECT_EQ(missing_[0].state, ConnectState::kSilent);
  EXPECT_GT(missing_[0].since_s, 0.5);
}

// Both ranks connect at about the same time.
TEST_P(TwoRanks, HaveOneConnectionWhereBothConnectAtOnce) {
  for (const double later_s : {1.49, 1.499, 1.5, 1.5005, 1.501, 1.51}) {
    expect_to_meet("", later_s);
  }
}

INSTANTIATE_TEST_SUITE_P(, TwoRanks, testing::Values("tcp", "tls"));

}  // namespace
}  // namespace motley
