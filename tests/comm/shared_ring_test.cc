#include "comm/tcp/shared_ring.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "support/property.h"

namespace motley {
namespace {

using testing::HasSubstr;

// A byte sequence in which loss, duplication or reordering is visible.
std::byte byte_at(std::uint64_t place) {
  return static_cast<std::byte>((place * 0x9E3779B97F4A7C15U) >> 56U);
}

std::vector<std::byte> bytes_from(std::uint64_t place, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = byte_at(place + i);
  return bytes;
}

struct Ring {
  std::unique_ptr<SharedRing> shared = std::make_unique<SharedRing>();
  RingWriter writer{*shared};
  RingReader reader{*shared};
};

RC_GTEST_PROP(SharedRing, GivesTheBytesInOrderAndAsManyAsItHas, ()) {
  Ring ring;
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  const auto moves = *rc::gen::container<std::vector<std::pair<bool, std::size_t>>>(
      rc::gen::pair(rc::gen::arbitrary<bool>(),
                    rc::gen::oneOf(rc::gen::inRange<std::size_t>(1, 100),
                                   rc::gen::inRange<std::size_t>(1, 2 * kRingBytes))));
  for (const auto& [writes, size] : moves) {
    const std::size_t held = written - taken;
    if (writes) {
      const auto move = ring.writer.write(bytes_from(written, size));
      RC_ASSERT(move.ok());
      RC_ASSERT(move->count == std::min(size, kRingBytes - held));
      written += move->count;
    } else {
      std::vector<std::byte> into(size);
      const auto move = ring.reader.read(into);
      RC_ASSERT(move.ok());
      RC_ASSERT(move->count == std::min(size, held));
      into.resize(move->count);
      RC_ASSERT(into == bytes_from(taken, move->count));
      taken += move->count;
    }
  }
}

TEST(SharedRing, WakesAReaderThatFoundNothingAndNobodyElse) {
  Ring ring;
  std::vector<std::byte> into(10);
  EXPECT_FALSE(ring.writer.write(into)->wakes_peer);
  EXPECT_EQ(ring.reader.read(into)->count, 10U);
  EXPECT_FALSE(ring.writer.write(into)->wakes_peer);
  EXPECT_EQ(ring.reader.read(into)->count, 10U);
  EXPECT_EQ(ring.reader.read(into)->count, 0U);
  EXPECT_TRUE(ring.writer.write(into)->wakes_peer);
  EXPECT_FALSE(ring.writer.write(into)->wakes_peer);
}

TEST(SharedRing, WakesAWriterOnceHalfOfItIsFree) {
  Ring ring;
  std::vector<std::byte> bytes(kRingBytes);
  EXPECT_EQ(ring.writer.write(bytes)->count, kRingBytes);
  EXPECT_EQ(ring.writer.write(bytes)->count, 0U);
  const std::span into(bytes);
  EXPECT_FALSE(ring.reader.read(into.first(kRingBytes / 2 - 1))->wakes_peer);
  EXPECT_TRUE(ring.reader.read(into.first(1))->wakes_peer);
  EXPECT_FALSE(ring.reader.read(into.first(1))->wakes_peer);
}

TEST(SharedRing, DoesNotWakeAWriterThatIsNotWaiting) {
  Ring ring;
  std::vector<std::byte> bytes(kRingBytes);
  EXPECT_EQ(ring.writer.write(bytes)->count, kRingBytes);
  EXPECT_FALSE(ring.reader.read(bytes)->wakes_peer);
}

// Each end sleeps until it is notified if the ring gives it no work; after a missing wake-up both
// would sleep.
TEST(SharedRing, CarriesAStreamBetweenTwoThreadsThatSleepUntilTheyAreWoken) {
  constexpr std::uint64_t kTotal = 16 * kRingBytes;
  constexpr std::chrono::seconds kStallTimeout{60};
  Ring ring;
  std::counting_semaphore<> writers_bell(0);
  std::counting_semaphore<> readers_bell(0);
  std::jthread writing([&] {
    for (std::uint64_t place = 0; place < kTotal;) {
      const std::size_t size = std::min<std::uint64_t>(1 + place % 300'007, kTotal - place);
      const auto bytes = bytes_from(place, size);
      for (std::span<const std::byte> rest(bytes); !rest.empty();) {
        const auto move = ring.writer.write(rest);
        ASSERT_TRUE(move.ok());
        if (move->wakes_peer) readers_bell.release();
        rest = rest.subspan(move->count);
        if (!rest.empty()) {
          ASSERT_TRUE(writers_bell.try_acquire_for(kStallTimeout));
        }
      }
      place += size;
    }
  });
  std::vector<std::byte> into(200'003);
  for (std::uint64_t place = 0; place < kTotal;) {
    const auto move = ring.reader.read(into);
    ASSERT_TRUE(move.ok());
    if (move->wakes_peer) writers_bell.release();
    if (move->count == 0) {
      ASSERT_TRUE(readers_bell.try_acquire_for(kStallTimeout));
    }
    ASSERT_TRUE(
        std::ranges::equal(std::span(into).first(move->count), bytes_from(place, move->count)));
    place += move->count;
  }
}

// Contents that the other process may have written.
TEST(DamagedRing, IsAnErrorToTheReader) {
  for (const std::uint64_t said : {std::uint64_t{kRingBytes} + 1, ~std::uint64_t{0}}) {
    Ring ring;
    ring.shared->written_B = said;
    std::vector<std::byte> into(10);
    const auto move = ring.reader.read(into);
    ASSERT_FALSE(move.ok());
    EXPECT_EQ(move.error().code, ErrorCode::kPeer);
    EXPECT_THAT(move.error().cause, HasSubstr("bytes apart"));
  }
}

TEST(DamagedRing, IsAnErrorToTheWriter) {
  for (const std::uint64_t said : {std::uint64_t{1}, ~std::uint64_t{0} - kRingBytes}) {
    Ring ring;
    ring.shared->taken_B = said;
    const auto move = ring.writer.write(std::vector<std::byte>(10));
    ASSERT_FALSE(move.ok());
    EXPECT_THAT(move.error().cause, HasSubstr("bytes apart"));
  }
}

}  // namespace
}  // namespace motley
