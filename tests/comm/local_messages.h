// Messages of random bytes between ranks 0 and 1 of one machine, told apart by their seeds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "comm/transport/transport.h"
#include "support/rank_group.h"

namespace motley {

inline constexpr Rank kRank0{0};
inline constexpr Rank kRank1{1};
inline constexpr std::size_t kPayloadBytes = 1000;

inline Buffer message(std::size_t bytes, std::uint32_t seed) {
  Buffer buffer(bytes);
  buffer.set_payload_bytes(bytes);
  for (std::byte& byte : buffer.message()) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return buffer;
}

inline bool is_message(Result<Buffer>& came, std::size_t bytes, std::uint32_t seed) {
  return came.ok() && std::ranges::equal(came->message(), message(bytes, seed).message());
}

inline TransportOptions options_of(const std::string& kind, Rank rank) {
  return options_for(kind, rank, 2);
}

}  // namespace motley
