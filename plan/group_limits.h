// Limits of a group, checked in every file and message that describes one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace motley {

inline constexpr std::size_t kDevicesMax = 4096;  // of all machines
inline constexpr std::size_t kRanksMax = 4096;    // of a plan
inline constexpr int kThreadsMax = 4096;          // of a rank
inline constexpr double kCpuShareMax = 4096;      // cores of a rank
inline constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 48;

// The characters of names besides letters and digits (is_word in base/json/json_fields.h).
inline constexpr const char* kMachineNameOthers = "._-";
inline constexpr const char* kDeviceNameOthers = "._-:";

// Limits of groups that measure together: pairs of machines, and ranks of an all-reduce.
inline constexpr std::size_t kProbedMachinesMax = 64;
inline constexpr std::size_t kSummingRanksMax = 256;

}  // namespace motley
