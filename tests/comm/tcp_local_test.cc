// Two ranks on one machine, which go on without TLS once they have shown each other the secret, and
// through memory where they can share some; and those that only seem to be, or do not keep to it.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "comm/make_transport.h"
#include "comm/meddler.h"
#include "comm/stranger.h"
#include "comm/tcp/derived_key.h"
#include "comm/tcp/shared_ring.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tcp_transport.h"
#include "comm/tcp/tls_session.h"
#include "comm/transport/message_stream.h"
#include "support/property.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};
constexpr std::size_t kPayloadBytes = 1000;

Buffer message(std::size_t bytes, std::uint32_t seed) {
  Buffer buffer(bytes);
  buffer.set_payload_bytes(bytes);
  for (std::byte& byte : buffer.message()) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return buffer;
}

bool is_message(Result<Buffer>& came, std::size_t bytes, std::uint32_t seed) {
  return came.ok() && std::ranges::equal(came->message(), message(bytes, seed).message());
}

// Rank 1 connects rank 0 through a meddler.
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

  // Carries a message each way and tells how many of the two could be seen.
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

TransportOptions options_of(const std::string& kind, Rank rank) {
  return options_for(kind, rank, 2);
}

// Through memory: the socket between them carries the hellos, under TLS, and bells.
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

// The meddler's connection to the acceptor has one address at both ends, the other has not.
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
      EXPECT_EQ(ranks[static_cast<std::size_t>(a)]->is_local(Rank{b}), a != b && a % 2 == b % 2)
          << a << " " << b;
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

// Both rings fill, and both ends have to wake each other all the time.
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

// A rank that has the secret, played by the test.
class PlayedSecretRank : public testing::Test {
 protected:
  void shake_hands() {
    for (bool done = false; !done;) {
      const auto outcome = tls_->handshake();
      ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
      done = *outcome;
      rank1_.say(taken());
      if (!done) hear_more();
    }
  }

  // What TLS wants to send, taken from it.
  std::vector<std::byte> taken() {
    const auto outgoing = tls_->outgoing();
    std::vector<std::byte> bytes(outgoing.begin(), outgoing.end());
    tls_->sent(bytes.size());
    return bytes;
  }

  std::vector<std::byte> encrypted(std::span<const std::byte> bytes) {
    EXPECT_EQ(*tls_->write(bytes), bytes.size());
    return taken();
  }

  void hear_more() {
    const auto room = tls_->room();
    const ssize_t count = ::recv(rank1_.fd(), room.data(), room.size(), 0);
    ASSERT_GT(count, 0);
    tls_->received(static_cast<std::size_t>(count));
  }

  Hello hear_hello() {
    std::array<std::byte, kHelloBytes> bytes;
    for (std::size_t heard = 0; heard < kHelloBytes;) {
      const auto count = tls_->read(std::span(bytes).subspan(heard));
      EXPECT_TRUE(count.ok()) << describe(count.error());
      if (!count.ok()) return {};
      heard += *count;
      if (*count == 0) hear_more();
    }
    return *read_hello(bytes);
  }

  static std::vector<std::byte> hello(bool local, const MemoryOffer& memory = {}) {
    std::array<std::byte, kHelloBytes> bytes;
    write_hello({1, 2, kRank1, kRank0, local, memory}, bytes);
    return {bytes.begin(), bytes.end()};
  }

  // As it travels: header and message.
  static std::vector<std::byte> said_message() {
    Buffer buffer = message(kPayloadBytes, 7);
    std::array<std::byte, kStreamHeaderBytes> header;
    write_stream_header(1, buffer.message().size(), header);
    std::vector<std::byte> bytes(header.begin(), header.end());
    std::ranges::copy(buffer.message(), std::back_inserter(bytes));
    return bytes;
  }

  void expect_message() {
    auto came = acceptor_->recv(kRank1, 1, Buffer(kPayloadBytes)).wait(soon(), "a message");
    EXPECT_TRUE(is_message(came, kPayloadBytes, 7)) << describe(came.error());
  }

  void expect_lost(const std::string& cause) {
    const auto came = acceptor_->recv(kRank1, 1, Buffer(kPayloadBytes)).wait(soon(), "a message");
    ASSERT_FALSE(came.ok());
    EXPECT_EQ(came.error().code, ErrorCode::kPeer);
    EXPECT_THAT(came.error().cause, HasSubstr(cause));
  }

  static std::unique_ptr<TlsSession> new_session() {
    const std::string purpose = "motley data, epoch 1";
    auto key = derive_key(options_of("local", kRank1).secret, purpose);
    return std::make_unique<TlsSession>(*TlsContext::make(std::move(key).value(), purpose),
                                        TlsSession::Role::kClient);
  }

  std::unique_ptr<Transport> acceptor_ =
      std::move(make_transport(options_of("local", kRank0))).value();
  Stranger rank1_{acceptor_->address()};
  std::unique_ptr<TlsSession> tls_ = new_session();
};

std::vector<std::byte> joined(std::vector<std::byte> first, const std::vector<std::byte>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// What comes with the last bytes of TLS is not lost.
TEST_F(PlayedSecretRank, MayGoOnPlainInTheSameBreath) {
  shake_hands();
  rank1_.say(joined(encrypted(hello(true)), said_message()));
  EXPECT_TRUE(hear_hello().local);
  expect_message();
}

TEST_F(PlayedSecretRank, HearsPlainBytesBehindTheHello) {
  shake_hands();
  rank1_.say(encrypted(hello(true)));
  EXPECT_TRUE(hear_hello().local);
  const auto rest = tls_->leave_off();
  ASSERT_TRUE(rest.ok()) << describe(rest.error());
  std::vector<std::byte> beat(rest->begin(), rest->end());
  if (beat.empty()) beat = rank1_.hear(kStreamHeaderBytes);
  std::array<std::byte, kStreamHeaderBytes> expected;
  write_stream_header(kBeatTag, 0, expected);
  EXPECT_TRUE(std::ranges::equal(beat, expected));
}

TEST_F(PlayedSecretRank, MayStayEncrypted) {
  shake_hands();
  rank1_.say(encrypted(hello(false)));
  (void)hear_hello();
  rank1_.say(encrypted(said_message()));
  expect_message();
}

TEST_F(PlayedSecretRank, IsLostWhenItDoesNotGoOnPlainAsItSaid) {
  shake_hands();
  rank1_.say(encrypted(hello(true)));
  (void)hear_hello();
  rank1_.say(encrypted(said_message()));
  expect_lost("damaged on the way");
}

TEST_F(PlayedSecretRank, IsLostWhenItGoesOnPlainUnasked) {
  shake_hands();
  rank1_.say(encrypted(hello(false)));
  (void)hear_hello();
  rank1_.say(said_message());
  expect_lost("not what the other end sent");
}

TEST_F(PlayedSecretRank, GoesOnThroughTheSocketWhenItsMemoryCannotBeOpened) {
  const auto memory = SharedMemory::make(RingPair::kBytes - 1);
  ASSERT_TRUE(memory.ok()) << describe(memory.error());
  shake_hands();
  rank1_.say(encrypted(hello(true, memory->offer())));
  EXPECT_EQ(hear_hello().memory, MemoryOffer{});
  rank1_.say(said_message());
  expect_message();
}

// One whose memory is taken.
class PlayedSharingRank : public PlayedSecretRank {
 protected:
  void SetUp() override {
    auto memory = SharedMemory::make(RingPair::kBytes);
    ASSERT_TRUE(memory.ok()) << describe(memory.error());
    const MemoryOffer offer = memory->offer();
    memory_ = memory->bytes();
    shake_hands();
    rank1_.say(encrypted(hello(true, offer)));
    const Hello answer = hear_hello();
    ASSERT_TRUE(answer.local);
    ASSERT_EQ(answer.memory, offer);
    rings_.emplace(std::move(memory).value(), RingPair::End::kOffering);
  }

  void write(std::span<const std::byte> bytes) {
    const auto move = rings_->writer().write(bytes);
    ASSERT_TRUE(move.ok());
    ASSERT_EQ(move->count, bytes.size());
  }

  void ring() const { rank1_.say(std::array{std::byte{1}}); }

  SharedRing& ring_to_door() { return *reinterpret_cast<SharedRing*>(memory_.data()); }

  std::span<std::byte> memory_;  // as long as the rings
  std::optional<RingPair> rings_;
};

TEST_F(PlayedSharingRank, IsHeardThroughMemory) {
  write(said_message());
  ring();
  expect_message();
}

TEST_F(PlayedSharingRank, HearsBeatsThroughMemory) {
  std::array<std::byte, kStreamHeaderBytes> beat;
  RingMove move = *rings_->reader().read(beat);
  if (move.count == 0) {
    EXPECT_EQ(rank1_.hear(1).size(), 1U);  // the bell
    move = *rings_->reader().read(beat);
  }
  EXPECT_EQ(move.count, beat.size());
  std::array<std::byte, kStreamHeaderBytes> expected;
  write_stream_header(kBeatTag, 0, expected);
  EXPECT_EQ(beat, expected);
}

// Its last words were there before it went.
TEST_F(PlayedSharingRank, IsHeardToTheEndWhenItGoes) {
  write(said_message());
  ASSERT_EQ(::shutdown(rank1_.fd(), SHUT_RDWR), 0);
  expect_message();
  expect_lost("closed the connection");
}

TEST_F(PlayedSharingRank, IsLostWhenItsRingMakesNoSense) {
  std::atomic_ref(ring_to_door().written_B).store(2 * kRingBytes);
  ring();
  expect_lost("bytes apart");
}

TEST_F(PlayedSharingRank, IsLostWhenWhatItWritesMakesNoSense) {
  write(std::vector<std::byte>(kStreamHeaderBytes, std::byte{0x5A}));
  ring();
  expect_lost("damaged on the way");
}

TEST_F(PlayedSharingRank, IsLostWhenItTakesNothingThatItWasSentAndGoes) {
  auto sent = acceptor_->send(kRank1, 1, message(4 * kRingBytes, 3));
  EXPECT_FALSE(sent.done());
  ASSERT_EQ(::shutdown(rank1_.fd(), SHUT_RDWR), 0);
  const auto outcome = sent.wait(soon(), "the peer");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
}

TEST_F(PlayedSharingRank, IsNotHarmedByBellsThatTellOfNothing) {
  for (int i = 0; i < 1000; ++i) ring();
  write(said_message());
  ring();
  expect_message();
}

TEST_F(PlayedSecretRank, HasToGoWhenItIsPlainBeforeItsHello) {
  shake_hands();
  rank1_.say(hello(true));
  EXPECT_TRUE(rank1_.is_sent_away());
}

TEST_F(PlayedSecretRank, HasToGoWhenItSaysMoreThanAHello) {
  shake_hands();
  rank1_.say(encrypted(joined(hello(true), {std::byte{1}})));
  EXPECT_EQ(hear_hello().from, kRank0);
  EXPECT_TRUE(rank1_.is_sent_away());
}

}  // namespace
}  // namespace motley
