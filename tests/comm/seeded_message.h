// Messages between two ranks, with contents generated from different seeds.
#pragma once

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "comm/transport/transport.h"

namespace motley {

inline constexpr Rank kRank0{0};
inline constexpr Rank kRank1{1};

inline Buffer message(std::size_t bytes, std::uint32_t seed) {
  Buffer buffer(bytes);
  buffer.set_payload_bytes(bytes);
  for (std::byte& byte : buffer.message()) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return buffer;
}

// Reports a test failure, with the error, if `came` is an error.
inline bool is_message(Result<Buffer>& came, std::size_t bytes, std::uint32_t seed) {
  if (!came.ok()) {
    ADD_FAILURE() << describe(came.error());
    return false;
  }
  Buffer expected = message(bytes, seed);
  return std::ranges::equal(came->message(), expected.message());
}

}  // namespace motley
