// The messages of a transfer, encoded as in docs/formats/frame.md and decoded again.
#include "checkpoint/transfer/file_messages.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

const Error kFullDisk{ErrorCode::kInternal, "cannot write x", "the disk is full", "free space"};

std::string hex_of(const Buffer& buffer) {
  std::string hex;
  for (const std::byte byte : buffer.payload()) {
    hex += fmt::format("{:02x}", std::to_integer<int>(byte));
  }
  return hex;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The error text after encoding and decoding; checks that the messages fit their buffers.
std::string text_of(const Error& error) {
  const Buffer part = aborted_part(error);
  EXPECT_LE(part.payload_bytes(), part_buffer_bytes(1));
  EXPECT_LE(part.payload_bytes(), ack_buffer_bytes());
  const auto read = read_part(part.payload());
  EXPECT_OK(read);
  EXPECT_EQ(read->kind, PartKind::kAborted);
  EXPECT_EQ(read->why.code, ErrorCode::kCorrupt);
  return in_full(read->why);
}

TEST(FileWords, HaveTheDocumentedBytes) {
  Buffer part(part_buffer_bytes(8));
  const auto content = begin_part(part, PartKind::kLast, 2);
  content[0] = std::byte{0xAB};
  content[1] = std::byte{0xCD};
  EXPECT_EQ(hex_of(part), "01abcd");
  EXPECT_EQ(hex_of(ack_buffer({.took_us = 1000})), "00e8030000");
  const Error error{ErrorCode::kData, "ab", "", "c"};
  EXPECT_EQ(hex_of(aborted_part(error)),
            "020200616200000100"
            "63");
  EXPECT_EQ(hex_of(ack_buffer({.kind = AckKind::kNotWritten, .why = error})),
            "010200616200000100"
            "63");
  EXPECT_EQ(hex_of(ack_buffer({.kind = AckKind::kGone, .why = error})),
            "020200616200000100"
            "63");
}

TEST(FileWords, ComeBackAsTheyWereSaid) {
  EXPECT_EQ(text_of(kFullDisk), in_full(kFullDisk));
  const Buffer refused = ack_buffer({.kind = AckKind::kNotWritten, .why = kFullDisk});
  const auto answer = read_ack(refused.payload());
  ASSERT_OK(answer);
  EXPECT_EQ(answer->kind, AckKind::kNotWritten);
  EXPECT_EQ(in_full(answer->why), in_full(kFullDisk));
  const auto written = read_ack(ack_buffer({.took_us = 77}).payload());
  ASSERT_OK(written);
  EXPECT_EQ(written->took_us, 77U);
}

TEST(FileWords, AreCutWhereTheyAreLong) {
  const std::string text = text_of({ErrorCode::kData, std::string(599, 'a') + "äb", "c", "d"});
  EXPECT_THAT(text, ::testing::StartsWith(std::string(590, 'a')));
  EXPECT_THAT(text, ::testing::HasSubstr("…"));
  EXPECT_THAT(text, ::testing::HasSubstr("cause: c"));
}

TEST(FileWords, HoldNothingThatWouldSpoilATerminal) {
  EXPECT_EQ(text_of({ErrorCode::kData, "a\x1b[2Jb", "c\nd", ""}), "a?[2Jb\n  cause: c?d\n");
  // Nor if the other end sends control characters.
  using namespace std::string_literals;
  const auto part = read_part(bytes_of("\2\1\0\x1b\0\0\0\0"s));
  ASSERT_OK(part);
  EXPECT_EQ(part->why.what, "?");
}

TEST(FileWords, AreRefusedWhereTheyAreNone) {
  using namespace std::string_literals;
  for (const std::string& bytes :
       {""s, "\0"s, "\1"s, "\3ab"s, "\2"s, "\2\1\0a\0\0\0"s, "\2\1\0a\0\0\0\0x"s,
        "\2\2\0a\0\0\0\0"s, "\2\0\0\0\0\0\0"s, "\2\x59\x02"s + std::string(601, 'a') + "\0\0\0\0"s,
        "\2\xff\xff"s + std::string(0xffff, 'a') + "\0\0\0\0"s}) {
    EXPECT_CORRUPT(read_part(bytes_of(bytes)), "malformed part of a file");
  }
  for (const std::string& bytes : {""s, "\0"s, "\0abc"s, "\0abcde"s, "\1"s, "\1\0\0"s, "\3abcd"s}) {
    EXPECT_CORRUPT(read_ack(bytes_of(bytes)), "malformed answer");
  }
}

}  // namespace
}  // namespace motley
