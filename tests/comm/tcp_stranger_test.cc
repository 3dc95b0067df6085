// Connections to the port of a TCP transport from outside the group. Whatever they send, the ranks
// connect and no other process does.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/make_transport.h"
#include "comm/stranger.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/transport/message_stream.h"
#include "comm/transport/transport.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};

std::unique_ptr<Transport> open(const TransportOptions& options) {
  auto transport = make_transport(options);
  if (!transport.ok()) ADD_FAILURE() << describe(transport.error());
  return std::move(transport).value();
}

std::array<std::byte, kHelloBytes> hello(const Hello& said) {
  std::array<std::byte, kHelloBytes> bytes;
  write_hello(said, bytes);
  return bytes;
}

Buffer message() {
  Buffer buffer(1000);
  buffer.set_payload_bytes(1000);
  std::ranges::fill(buffer.message(), std::byte{7});
  return buffer;
}

class AtTheDoor : public testing::TestWithParam<std::string> {
 protected:
  // Rank 1 connects, and a message arrives.
  void expect_the_group_to_meet() {
    auto other = open(options_for(GetParam(), kRank1, 2));
    const std::vector<std::string> addresses = {acceptor_->address(), other->address()};
    std::jthread joining([&] {
      const auto joined = other->connect(addresses, soon());
      EXPECT_TRUE(joined.ok()) << describe(joined.error());
    });
    const auto connected = acceptor_->connect(addresses, soon());
    ASSERT_TRUE(connected.ok()) << describe(connected.error());
    joining.join();
    auto sent = other->send(kRank0, 1, message());
    const auto came = acceptor_->recv(kRank1, 1, Buffer(1000)).wait(soon(), "a message");
    EXPECT_TRUE(came.ok()) << describe(came.error());
  }

  std::unique_ptr<Transport> acceptor_ = open(options_for(GetParam(), kRank0, 2));
};

TEST_P(AtTheDoor, WhoComesFirstAndSaysNothingTakesNoPlace) {
  const Stranger stranger(acceptor_->address());
  ASSERT_TRUE(stranger.connected());
  expect_the_group_to_meet();
}

TEST_P(AtTheDoor, WhoSaysNothingHasToGo) {
  const Stranger stranger(acceptor_->address());
  EXPECT_TRUE(stranger.is_sent_away());
}

TEST_P(AtTheDoor, WhoTalksNonsenseHasToGo) {
  const Stranger stranger(acceptor_->address());
  stranger.say(std::vector<std::byte>(400, std::byte{'x'}));
  EXPECT_TRUE(stranger.is_sent_away());
  expect_the_group_to_meet();
}

TEST_P(AtTheDoor, HundredsWhoSayNothingKeepNobodyOut) {
  std::vector<Stranger> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(acceptor_->address());
  for (int i = 0; i < 200; ++i) {
    crowd.emplace_back(acceptor_->address(), fmt::format("127.0.1.{}", 1 + i / 3));
  }
  for (const Stranger& stranger : crowd) EXPECT_TRUE(stranger.connected());
  expect_the_group_to_meet();
}

TEST_P(AtTheDoor, NobodyIsLetInAfterTheLast) {
  expect_the_group_to_meet();
  const Stranger late(acceptor_->address());
  EXPECT_FALSE(late.connected());
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         AtTheDoor,
                         testing::Values("tcp", "tls", "local"),
                         [](const auto& kind) { return kind.param; });

TEST(TlsDoor, WhoSpeaksPlainlyHasToGo) {
  const auto acceptor = open(options_for("tls", kRank0, 2));
  const Stranger stranger(acceptor->address());
  stranger.say(hello({1, 2, kRank1, kRank0}));
  EXPECT_TRUE(stranger.is_sent_away());
}

TEST(TlsDoor, AnotherSecretOpensNothingAndIsToldSoAtOnce) {
  const auto acceptor = open(options_for("tls", kRank0, 2));
  auto options = options_for("tls", kRank1, 2);
  options.secret.back() = 'x';
  const auto other = open(options);
  const auto joined =
      other->connect({acceptor->address(), other->address()}, Deadline::after_s(3600));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kUnauthorised);
  EXPECT_THAT(joined.error().what, HasSubstr("rank 0 does not accept this rank's secret"));
  const auto met =
      acceptor->connect({acceptor->address(), other->address()}, Deadline::after_s(0.1));
  ASSERT_FALSE(met.ok());
  EXPECT_THAT(met.error().cause, HasSubstr("was refused, 127.0.0.1: the TLS handshake failed"));
}

TEST(TlsDoor, TheSecretOfAnotherEpochOpensNothing) {
  const auto acceptor = open(options_for("tls", kRank0, 2));
  auto options = options_for("tls", kRank1, 2);
  options.epoch = 2;
  const auto other = open(options);
  const auto joined =
      other->connect({acceptor->address(), other->address()}, Deadline::after_s(3600));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kUnauthorised);
}

// A plain acceptor closes without an alert; an overloaded one may do the same, so the rank
// retries.
TEST(PlainDoor, IsNotMistakenForOneWithTls) {
  const auto acceptor = open(options_for("tcp", kRank0, 2));
  const auto other = open(options_for("tls", kRank1, 2));
  const std::string port = acceptor->address().substr(acceptor->address().rfind(':'));
  const auto joined =
      other->connect({"tls:127.0.0.1" + port, other->address()}, Deadline::after_s(0.5));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kPeer);
  EXPECT_THAT(joined.error().what, HasSubstr("cannot connect to rank 0"));
  EXPECT_THAT(joined.error().cause, AnyOf(HasSubstr("closed"), HasSubstr("reset")));
}

TEST(TlsDoor, IsNotMistakenForAPlainOne) {
  const auto acceptor = open(options_for("tls", kRank0, 2));
  const auto other = open(options_for("tcp", kRank1, 2));
  const auto joined = other->connect({acceptor->address(), other->address()}, soon());
  ASSERT_FALSE(joined.ok());
  EXPECT_THAT(joined.error().cause, HasSubstr("not one of TCP without TLS"));
}

class WrongHello : public testing::TestWithParam<Hello> {};

TEST_P(WrongHello, IsNotAnswered) {
  const auto acceptor = open(options_for("tcp", kRank1, 3));
  const Stranger stranger(acceptor->address());
  stranger.say(hello(GetParam()));
  EXPECT_TRUE(stranger.is_sent_away());
}

INSTANTIATE_TEST_SUITE_P(,
                         WrongHello,
                         testing::Values(Hello{2, 3, Rank{2}, Rank{1}},  // epoch
                                         Hello{1, 4, Rank{2}, Rank{1}},  // size of the group
                                         Hello{1, 3, Rank{2}, Rank{0}},  // for another rank
                                         Hello{1, 3, Rank{1}, Rank{1}},  // from itself
                                         Hello{1, 3, Rank{3}, Rank{1}},  // no such rank
                                         Hello{1, 3, Rank{-1}, Rank{1}}));

// Without TLS, so that a test can emulate a rank.
class PlayedRank : public testing::Test {
 protected:
  void SetUp() override {
    rank1_.say(hello({1, 3, kRank1, kRank0}));
    const auto answer = rank1_.hear(kHelloBytes);
    ASSERT_EQ(answer.size(), kHelloBytes);
    EXPECT_EQ(std::memcmp(answer.data(), hello({1, 3, kRank0, kRank1}).data(), kHelloBytes), 0);
  }

  static std::array<std::byte, kStreamHeaderBytes> header(Tag tag, std::uint64_t message_bytes) {
    std::array<std::byte, kStreamHeaderBytes> bytes;
    write_stream_header(tag, message_bytes, bytes);
    return bytes;
  }

  std::unique_ptr<Transport> acceptor_ = open(options_for("tcp", kRank0, 3));
  Stranger rank1_{acceptor_->address()};
};

TEST_F(PlayedRank, IsThereOnlyOnce) {
  const Stranger again(acceptor_->address());
  again.say(hello({1, 3, kRank1, kRank0}));
  EXPECT_TRUE(again.is_sent_away());
}

TEST_F(PlayedRank, IsLostWhenItAnnouncesTheImpossible) {
  auto receive = acceptor_->recv(kRank1, 1, Buffer(100));
  rank1_.say(header(1, 1ULL << 60));
  const auto outcome = receive.wait(soon(), "a message");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_THAT(outcome.error().cause, HasSubstr("malformed message"));
}

TEST_F(PlayedRank, IsLostWhenItsHeaderIsDamaged) {
  auto receive = acceptor_->recv(kRank1, 1, Buffer(100));
  auto damaged = header(1, 164);
  damaged[8] ^= std::byte{1};
  rank1_.say(damaged);
  const auto outcome = receive.wait(soon(), "a message");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_THAT(outcome.error().cause, HasSubstr("damaged in transit"));
}

TEST_F(PlayedRank, IsLostWhenItFallsSilentWithinAMessage) {
  auto receive = acceptor_->recv(kRank1, 1, Buffer(100));
  rank1_.say(header(1, 164));
  rank1_.say(std::vector<std::byte>(100));
  const auto outcome = receive.wait(soon(), "a message");
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().what, HasSubstr("rank 1 was lost"));
  EXPECT_THAT(outcome.error().cause, HasSubstr("no heartbeat"));
}

TEST_F(PlayedRank, HearsThatTheOtherIsAlive) {
  const auto beat = rank1_.hear(16);
  ASSERT_EQ(beat.size(), 16U);
  EXPECT_EQ(std::memcmp(beat.data(), header(kHeartbeatTag, 0).data(), 16), 0);
}

}  // namespace
}  // namespace motley
