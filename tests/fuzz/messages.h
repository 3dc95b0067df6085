// What must hold for any bytes that are read as a message of values, and how the fuzzers that feed
// them cut their input: a byte chooses the codec, two more are the count of values, and the rest is
// what a peer sent.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "compression/codec/codec.h"

namespace motley {

// Reading twice gives the same, and adding to zeros gives what reading gives.
inline void check_message(const Codec& codec,
                          std::span<const std::byte> wire_B,
                          std::size_t count) {
  std::vector<float> values(count, 1.0F);
  std::vector<float> sum(count);
  const auto read = codec.decode(wire_B, values);
  const auto added = codec.decode_add(wire_B, sum);
  MOTLEY_CHECK(read.ok() == added.ok(), "read {}, added {}", read.ok(), added.ok());
  if (!read.ok()) {
    MOTLEY_CHECK(read.error().code == ErrorCode::kCorrupt, "{}", describe(read.error()));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const bool both_nan = values[i] != values[i] && sum[i] != sum[i];
    MOTLEY_CHECK(both_nan || values[i] == sum[i], "value {}: {} and {}", i, values[i], sum[i]);
  }
}

// codec_of(choice) is a codec for each number.
template <class CodecOf>
void check_input(const char* data, std::size_t size, const CodecOf& codec_of) {
  if (size < 3) return;
  std::uint16_t count = 0;
  std::memcpy(&count, data + 1, sizeof count);
  const auto message_B = std::as_bytes(std::span(data + 3, size - 3));
  check_message(codec_of(static_cast<unsigned char>(*data)), message_B, count);
}

}  // namespace motley
