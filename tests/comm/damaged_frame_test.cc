// Messages from a peer that are not the expected frame, over every transport: each gives an error
// that names frame and peer, and the next frame arrives intact.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "comm/frames/frame_header.h"
#include "comm/frames/frame_link.h"
#include "compression/make_codec.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};
constexpr std::uint32_t kEpoch = 4;
constexpr std::uint64_t kPlan = 0xABCDEF;
constexpr FrameId kFrame{FrameKind::kActivation, ChunkId{2}, MicroId{3}, 7};
constexpr Tag kTag = Tag{1} << 40 | Tag{2} << 24 | 3;  // the tag of kFrame
constexpr std::size_t kBufferBytes = 1000;

FrameId id_with(FrameKind kind, std::int32_t source, std::int32_t number) {
  return FrameId::from_header(kind, source, number, 7);
}

// A whole message with a header that fits its payload.
Buffer message(const FrameHeader& header, std::span<const std::byte> payload) {
  Buffer buffer = buffer_with(payload);
  FrameHeader whole = header;
  whole.payload_bytes = payload.size();
  whole.payload_hash = hash64(payload);
  write_header(whole, buffer.header().first<kFrameHeaderBytes>());
  return buffer;
}

std::vector<std::byte> content() {
  return std::vector<std::byte>(500, std::byte{0x5A});
}

FrameHeader right_header() {
  return {kEpoch, kPlan, kRank0, kFrame, 0, 0};
}

Buffer with_header(const std::function<void(FrameHeader&)>& change) {
  FrameHeader header = right_header();
  change(header);
  return message(header, content());
}

Buffer with_bytes(const std::function<void(std::span<std::byte>)>& change) {
  Buffer buffer = message(right_header(), content());
  change(buffer.message());
  return buffer;
}

// The correct header before a payload of another length than it announces.
Buffer of_length(std::size_t payload_bytes) {
  Buffer right = message(right_header(), content());
  Buffer buffer(std::max(payload_bytes, content().size()));
  std::ranges::fill(buffer.message_space(), std::byte{0});
  std::memcpy(buffer.message_space().data(), right.message().data(), right.message().size());
  buffer.set_payload_bytes(payload_bytes);
  return buffer;
}

// An intact header that announces another length than its payload has.
Buffer announcing(std::uint64_t payload_bytes) {
  FrameHeader header = right_header();
  header.payload_bytes = payload_bytes;
  header.payload_hash = hash64(content());
  Buffer buffer = message(right_header(), content());
  write_header(header, buffer.header().first<kFrameHeaderBytes>());
  return buffer;
}

struct Damage {
  const char* name;
  const char* words;  // expected in the error
  std::function<Buffer()> make;
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"flipped bit of the payload", "its payload was damaged in transit",
       [] { return with_bytes([](auto bytes) { bytes[64 + 99] ^= std::byte{4}; }); }},
      {"flipped bit of the header", "its header was damaged in transit",
       [] { return with_bytes([](auto bytes) { bytes[40] ^= std::byte{1}; }); }},
      {"flipped bit of the payload's hash", "its header was damaged in transit",
       [] { return with_bytes([](auto bytes) { bytes[48] ^= std::byte{1}; }); }},
      {"another program's bytes", "does not start like a frame of Motley",
       [] { return with_bytes([](auto bytes) { std::ranges::fill(bytes, std::byte{'G'}); }); }},
      {"zeros", "does not start like a frame of Motley",
       [] { return with_bytes([](auto bytes) { std::ranges::fill(bytes, std::byte{0}); }); }},
      {"cut", "declares 500 bytes of payload, but it has 499", [] { return of_length(499); }},
      {"only a header", "declares 500 bytes of payload, but it has 0", [] { return of_length(0); }},
      {"extended", "declares 500 bytes of payload, but it has 501", [] { return of_length(501); }},
      {"longer than any that is legal", "1064 bytes were expected at most",
       [] { return of_length(kBufferBytes + 1); }},
      {"much longer", "1064 bytes were expected at most", [] { return of_length(4 << 20); }},
      {"forged length", "declares 1099511627776 bytes of payload, but it has 500",
       [] { return announcing(1ULL << 40); }},
      {"length that overflows", "declares 18446744073709551615 bytes of payload, but it has 500",
       [] { return announcing(~0ULL); }},
      {"of a former launch", "its epoch is 3, this rank's is 4",
       [] { return with_header([](FrameHeader& header) { header.epoch = 3; }); }},
      {"of another plan", "its plan is 0000000000000001",
       [] { return with_header([](FrameHeader& header) { header.plan_hash = 1; }); }},
      {"of another rank", "rank 2 sent it",
       [] { return with_header([](FrameHeader& header) { header.sender = Rank{2}; }); }},
      {"of a rank that cannot be", "rank -1 sent it",
       [] { return with_header([](FrameHeader& header) { header.sender = Rank{-1}; }); }},
      {"replayed from the step before", "it is activation of chunk 2, micro-batch 3, step 6",
       [] {
         return with_header([](FrameHeader& h) {
           h.id = {FrameKind::kActivation, ChunkId{2}, MicroId{3}, 6};
         });
       }},
      {"of another chunk", "it is activation of chunk 1, micro-batch 3, step 7",
       [] {
         return with_header([](FrameHeader& h) { h.id = id_with(FrameKind::kActivation, 1, 3); });
       }},
      {"of another micro-batch", "it is activation of chunk 2, micro-batch 4, step 7",
       [] {
         return with_header([](FrameHeader& h) { h.id = id_with(FrameKind::kActivation, 2, 4); });
       }},
      {"of another kind", "it is gradient of chunk 2",
       [] {
         return with_header([](FrameHeader& h) { h.id = id_with(FrameKind::kGradient, 2, 3); });
       }},
      {"of no kind", "it is frame of unknown kind 200",
       [] {
         return with_header(
             [](FrameHeader& h) { h.id = id_with(static_cast<FrameKind>(200), 2, 3); });
       }},
  };
  return all;
}

class DamagedFrame : public testing::TestWithParam<std::string> {
 protected:
  Result<Buffer> receive(Buffer sent) {
    auto frame = link_.recv(kRank0, kFrame, Buffer(kBufferBytes));
    auto sending = group_.at(kRank0).send(kRank1, kTag, std::move(sent));
    auto outcome = frame.wait(soon());
    EXPECT_TRUE(sending.wait(soon(), "rank 1").ok());
    return outcome;
  }

  void expect_the_right_one_to_come() {
    const auto right = receive(message(right_header(), content()));
    ASSERT_TRUE(right.ok()) << describe(right.error());
    EXPECT_TRUE(std::ranges::equal(right->payload(), content()));
  }

  RankGroup group_{GetParam(), 2};
  FrameLink link_{group_.at(kRank1), kRank1, kEpoch, kPlan};
};

TEST_P(DamagedFrame, IsAnErrorInWordsAndHarmsNoOther) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.name);
    const auto outcome = receive(damage.make());
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(outcome.error().what, HasSubstr("from rank 0"));
    EXPECT_THAT(outcome.error().what, HasSubstr("activation of chunk 2, micro-batch 3, step 7"));
    EXPECT_THAT(outcome.error().cause, HasSubstr(damage.words));
    EXPECT_NE(outcome.error().remedy, "");
    expect_the_right_one_to_come();
  }
}

// It stays in the mailbox, and the expected frame arrives.
TEST_P(DamagedFrame, UnderATagThatNobodyWaitsForIsLeftAlone) {
  auto foreign = group_.at(kRank0).send(kRank1, kTag + 1, message(right_header(), content()));
  expect_the_right_one_to_come();
}

TEST_P(DamagedFrame, TakesOnlyOneOfTwoThatAreTheSame) {
  expect_the_right_one_to_come();
  const FrameId next(FrameKind::kActivation, ChunkId{2}, MicroId{3}, 8);
  auto frame = link_.recv(kRank0, next, Buffer(kBufferBytes));
  auto replay = group_.at(kRank0).send(kRank1, kTag, message(right_header(), content()));
  const auto outcome = frame.wait(soon());
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().cause, HasSubstr("step 7"));
}

// A valid frame whose few bytes decompress to 64 MiB: the receiving values stay unchanged.
TEST_P(DamagedFrame, ThatUnpacksToMoreThanIsExpectedReachesNoValue) {
  constexpr std::size_t kValues = 64;
  const auto codec = std::move(make_codec("zstd(1)")).value();
  std::vector<float> huge((std::size_t{64} << 20) / sizeof(float));
  std::vector<std::byte> bomb(codec->bytes_max(huge.size()));
  bomb.resize(codec->encode(huge, bomb));
  Buffer sent = message(right_header(), bomb);
  auto frame = link_.recv(kRank0, kFrame, Buffer(bomb.size()));
  auto sending = group_.at(kRank0).send(kRank1, kTag, std::move(sent));
  const auto came = frame.wait(soon());
  ASSERT_TRUE(came.ok()) << describe(came.error());
  std::vector<float> values(kValues, 1.5F);
  const auto decoded = codec->decode(came->payload(), values);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(decoded.error().cause, HasSubstr("does not declare the expected 256 bytes"));
  EXPECT_EQ(values, std::vector<float>(kValues, 1.5F));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         DamagedFrame,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley
