// Fixtures for the tests of two ranks on one machine.
#pragma once

#include <cstddef>
#include <string>

#include "comm/seeded_message.h"
#include "support/rank_group.h"

namespace motley {

inline constexpr std::size_t kPayloadBytes = 1000;

inline TransportOptions options_of(const std::string& kind, Rank rank) {
  return options_for(kind, rank, 2);
}

}  // namespace motley
