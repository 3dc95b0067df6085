#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "comm/frames/frame_header.h"

namespace motley {
namespace {

using testing::HasSubstr;

using HeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeader example() {
  return {0x01020304, 0x1112131415161718,
          Rank{2},    FrameId{FrameKind::kGradient, ChunkId{3}, MicroId{5}, 700},
          9,          0x2122232425262728};
}

HeaderBytes written(const FrameHeader& header) {
  HeaderBytes bytes{};
  write_header(header, bytes);
  return bytes;
}

// Little-endian, read without the code under test.
std::uint64_t number_at(const HeaderBytes& bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
  }
  return value;
}

void rehash(HeaderBytes& bytes) {
  const std::uint64_t hash = hash64(std::span(bytes).first(56));
  std::memcpy(bytes.data() + 56, &hash, sizeof hash);
}

TEST(FrameHeader, HasTheDocumentedBytes) {
  const HeaderBytes bytes = written(example());
  EXPECT_EQ(std::memcmp(bytes.data(), "MTLF", 4), 0);
  EXPECT_EQ(number_at(bytes, 4, 2), 5U);  // version
  EXPECT_EQ(number_at(bytes, 6, 1), 2U);  // kind
  EXPECT_EQ(number_at(bytes, 7, 1), 0U);
  EXPECT_EQ(number_at(bytes, 8, 4), 0x01020304U);
  EXPECT_EQ(number_at(bytes, 12, 4), 2U);
  EXPECT_EQ(number_at(bytes, 16, 8), 0x1112131415161718U);
  EXPECT_EQ(number_at(bytes, 24, 4), 3U);
  EXPECT_EQ(number_at(bytes, 28, 4), 5U);
  EXPECT_EQ(number_at(bytes, 32, 8), 700U);
  EXPECT_EQ(number_at(bytes, 40, 8), 9U);
  EXPECT_EQ(number_at(bytes, 48, 8), 0x2122232425262728U);
  EXPECT_EQ(number_at(bytes, 56, 8), hash64(std::span(bytes).first(56)));
}

TEST(FrameHeader, MatchesTheGoldenExample) {
  std::string hex;
  for (const std::byte byte : written(example())) {
    hex += fmt::format("{:02x}", std::to_integer<int>(byte));
  }
  EXPECT_EQ(hex,
            "4d544c46050002000403020102000000181716151413121103000000050000"
            "00bc0200000000000009000000000000002827262524232221"
            "998722d4afef8979");
}

TEST(FrameHeader, ComesBackAsItWasWritten) {
  const auto header = read_header(written(example()));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->epoch, example().epoch);
  EXPECT_EQ(header->plan_hash, example().plan_hash);
  EXPECT_EQ(header->sender, example().sender);
  EXPECT_EQ(header->id, example().id);
  EXPECT_EQ(header->payload_bytes, example().payload_bytes);
  EXPECT_EQ(header->payload_hash, example().payload_hash);
}

TEST(FrameHeader, RefusesEveryFlippedBit) {
  for (std::size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
    HeaderBytes bytes = written(example());
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto header = read_header(bytes);
    ASSERT_FALSE(header.ok()) << bit;
    EXPECT_EQ(header.error().code, ErrorCode::kCorrupt);
  }
}

TEST(FrameHeader, NamesAnotherVersion) {
  HeaderBytes bytes = written(example());
  bytes[4] = std::byte{7};
  rehash(bytes);
  const auto header = read_header(bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.error().cause, HasSubstr("version 7"));
}

TEST(FrameHeader, RefusesAReservedByteInUse) {
  HeaderBytes bytes = written(example());
  bytes[7] = std::byte{1};
  rehash(bytes);
  EXPECT_FALSE(read_header(bytes).ok());
}

}  // namespace
}  // namespace motley
