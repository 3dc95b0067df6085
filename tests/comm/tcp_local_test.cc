// Two ranks on one machine: they stop using TLS once each has proved to know the secret, and use
// shared memory if possible. Also ranks that only appear to be on one machine.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "comm/local_messages.h"
#include "comm/meddler.h"
#include "comm/tcp/shared_ring.h"
#include "comm/tcp/tcp_transport.h"
#include "support/property.h"
#include "support/rank_group.h"

namespace motley {
namespace {

// Rank 1 connects to rank 0 through a meddler.
class Observed {
 public:
  Observed(const TransportOptions& of_acceptor, const TransportOptions& of_connecting)
      : acceptor_(open(of_acceptor)),
        meddler_(acceptor_->address()),
        connecting_(open(of_connecting)) {
    std::jthread waiting([&] {
      const auto met = acceptor_->connect({acceptor_->address(), connecting_->address()}, soon());
      EXPECT_TRUE(met.ok()) << describe(met.error());
    });
    const auto met = connecting_->connect({meddler_.address(), connecting_->address()}, soon());
    EXPECT_TRUE(met.ok()) << describe(met.error());
  }

  // Sends a message in each direction; returns how many of the two the meddler saw in plain text.
  int seen_of_two() {
    const std::array seeds = {1U, 2U};
    auto there = acceptor_->recv(kRank1, 1, Buffer(kPayloadBytes));
    auto back = connecting_->recv(kRank0, 1, Buffer(kPayloadBytes));
    auto sent = connecting_->send(kRank0, 1, message(kPayloadBytes, seeds[0]));
    auto answered = acceptor_->send(kRank1, 1, message(kPayloadBytes, seeds[1]));
    auto came = there.wait(soon(), "a message");
    auto answer = back.wait(soon(), "the answer");
    EXPECT_TRUE(is_message(came, kPayloadBytes, seeds[0]));
    EXPECT_TRUE(is_message(answer, kPayloadBytes, seeds[1]));
    return static_cast<int>(std::ranges::count_if(
        seeds, [&](auto seed) { return meddler_.saw(message(kPayloadBytes, seed).payload()); }));
  }

  bool saw_a_hello() {
    const std::string begin = "MTLH";
    return meddler_.saw(std::as_bytes(std::span(begin)));
  }

  [[nodiscard]] bool is_local() const {
    EXPECT_EQ(acceptor_->is_local(kRank1), connecting_->is_local(kRank0));
    return acceptor_->is_local(kRank1);
  }

 private:
  static std::unique_ptr<LocatingTransport> open(const TransportOptions& options) {
    auto transport = make_tcp_transport(options);
    if (!transport.ok()) ADD_FAILURE() << describe(transport.error());
    return std::move(transport).value();
  }

  const std::unique_ptr<LocatingTransport> acceptor_;
  Meddler meddler_;
  const std::unique_ptr<LocatingTransport> connecting_;
};

// Through shared memory: the socket between them carries only the hellos, under TLS, and
// notifications.
TEST(LocalPair, SendsNothingThroughTheSocketOnceBothHaveSaidHello) {
  Observed pair(options_of("local", kRank0), options_of("local", kRank1));
  EXPECT_EQ(pair.seen_of_two(), 0);
  EXPECT_FALSE(pair.saw_a_hello());
  EXPECT_TRUE(pair.is_local());
}

TEST(LocalPair, StaysEncryptedWhereThatIsAskedFor) {
  Observed pair(options_of("tls", kRank0), options_of("tls", kRank1));
  EXPECT_EQ(pair.seen_of_two(), 0);
  EXPECT_FALSE(pair.is_local());
}

TEST(LocalPair, StaysEncryptedWhereOneEndAsksForIt) {
  for (const auto& [acceptor, connecting] : {std::pair{"tls", "local"}, {"local", "tls"}}) {
    Observed pair(options_of(acceptor, kRank0), options_of(connecting, kRank1));
    EXPECT_EQ(pair.seen_of_two(), 0);
    EXPECT_FALSE(pair.is_local());
  }
}

// The meddler's connection to the acceptor has the same address at both ends, the other one does
// not.
TEST(PairWithTwoAddresses, StaysEncryptedThoughOneEndSeesOnlyOne) {
  TransportOptions connecting = options_of("local", kRank1);
  connecting.bind_address = "127.0.0.2";
  Observed pair(options_of("local", kRank0), connecting);
  EXPECT_EQ(pair.seen_of_two(), 0);
  EXPECT_FALSE(pair.is_local());
}

TEST(Group, KnowsWhichRanksAreOnThisMachine) {
  constexpr int kRanks = 4;
  std::vector<std::unique_ptr<LocatingTransport>> ranks;
  std::vector<std::string> addresses;
  for (Rank rank{0}; rank.value < kRanks; ++rank.value) {
    TransportOptions options = options_for("local", rank, kRanks);
    options.bind_address = rank.value % 2 == 0 ? "127.0.0.1" : "127.0.0.2";
    ranks.push_back(std::move(make_tcp_transport(options)).value());
    addresses.push_back(ranks.back()->address());
  }
  {
    std::vector<std::jthread> meeting;
    for (const auto& rank : ranks) {
      meeting.emplace_back([&] { EXPECT_TRUE(rank->connect(addresses, soon()).ok()); });
    }
  }
  for (int a = 0; a < kRanks; ++a) {
    for (int b = 0; b < kRanks; ++b) {
      const LocatingTransport& rank = *ranks[static_cast<std::size_t>(a)];
      const bool is_neighbour = a != b && a % 2 == b % 2;
      EXPECT_EQ(rank.is_local(Rank{b}), is_neighbour) << a << " " << b;
      EXPECT_EQ(rank.shares_memory(Rank{b}), is_neighbour) << a << " " << b;
    }
  }
}

RC_GTEST_PROP(LocalPairProperty, CarriesMessagesOfAllSizesBothWays, ()) {
  static RankGroup group("local", 2);
  static Tag tag = 0;
  const auto sizes = *rc::gen::container<std::vector<std::size_t>>(rc::gen::oneOf(
      rc::gen::inRange<std::size_t>(0, 200), rc::gen::inRange<std::size_t>(0, 300'000)));
  ++tag;
  std::vector<Pending> sent;
  std::vector<Pending> came;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Rank from{static_cast<std::int32_t>(i % 2)};
    const Rank to{1 - from.value};
    sent.push_back(group.at(from).send(to, tag, message(sizes[i], static_cast<std::uint32_t>(i))));
    came.push_back(group.at(to).recv(from, tag, Buffer(sizes[i])));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto outcome = came[i].wait(soon(), "a message");
    RC_ASSERT(is_message(outcome, sizes[i], static_cast<std::uint32_t>(i)));
    RC_ASSERT(sent[i].wait(soon(), "the peer").ok());
  }
}

// Both rings become full, and both ends must wake each other continually.
TEST(LocalPair, CarriesMoreThanItsMemoryHoldsBothWaysAtOnce) {
  constexpr std::uint32_t kMessages = 6;
  constexpr std::size_t kBytes = 3 * kRingBytes + 17;
  RankGroup group("local", 2);
  std::vector<std::jthread> ends;
  for (const Rank self : {kRank0, kRank1}) {
    ends.emplace_back([&group, self] {
      const Rank other{1 - self.value};
      std::vector<Pending> sent;
      std::vector<Pending> came;
      for (std::uint32_t i = 0; i < kMessages; ++i) {
        sent.push_back(group.at(self).send(other, 1, message(kBytes, i)));
        came.push_back(group.at(self).recv(other, 1, Buffer(kBytes)));
      }
      for (std::uint32_t i = 0; i < kMessages; ++i) {
        auto outcome = came[i].wait(soon(), "a message");
        EXPECT_TRUE(is_message(outcome, kBytes, i)) << self.value << ", " << i;
        EXPECT_TRUE(sent[i].wait(soon(), "the peer").ok());
      }
    });
  }
}

}  // namespace
}  // namespace motley
