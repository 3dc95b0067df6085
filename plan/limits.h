// The most that a group may have, in every file and message that tells of one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace motley {

inline constexpr std::size_t kDevicesMax = 4096;  // of all machines
inline constexpr std::size_t kRanksMax = 4096;    // of a plan
inline constexpr int kThreadsMax = 4096;          // of a rank
inline constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 48;

// Bytes of a text in a file for people.
inline constexpr std::size_t kTextMax = 4096;

// Of groups that measure together: each machine with each, and ranks that sum.
inline constexpr std::size_t kProbedMachinesMax = 64;
inline constexpr std::size_t kSummingRanksMax = 256;

}  // namespace motley
