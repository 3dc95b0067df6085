// What a rank on this machine with the secret may send after its hello, in plain text or through
// shared memory, and what makes it lose its connection.
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "comm/played_rank.h"
#include "comm/tcp/shared_ring.h"

namespace motley {
namespace {

// Plain bytes that arrive together with the last TLS record are not lost.
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
  const auto rest = tls_->stop_encryption();
  ASSERT_TRUE(rest.ok()) << describe(rest.error());
  std::vector<std::byte> beat(rest->begin(), rest->end());
  if (beat.empty()) beat = rank1_.hear(kStreamHeaderBytes);
  std::array<std::byte, kStreamHeaderBytes> expected;
  write_stream_header(kHeartbeatTag, 0, expected);
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
  expect_lost("damaged in transit");
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

// A rank whose offer of shared memory was accepted.
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

  std::span<std::byte> memory_;  // valid as long as the rings
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
    EXPECT_EQ(rank1_.hear(1).size(), 1U);  // the notification
    move = *rings_->reader().read(beat);
  }
  EXPECT_EQ(move.count, beat.size());
  std::array<std::byte, kStreamHeaderBytes> expected;
  write_stream_header(kHeartbeatTag, 0, expected);
  EXPECT_EQ(beat, expected);
}

// Its last message was written before it left.
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
  expect_lost("damaged in transit");
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
