// Units in cluster files, in addition to those in the code.
#pragma once

namespace motley {

inline constexpr double kBytesPerMegabit = 1e6 / 8;
inline constexpr double kSecondsPerMicrosecond = 1e-6;
inline constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace motley
