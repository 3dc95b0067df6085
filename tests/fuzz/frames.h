// The frame that tests/fuzz/frame_fuzz.cc expects, which is also its seed.
#pragma once

#include "comm/frames/frame_link.h"

namespace motley {

inline constexpr std::uint32_t kFuzzEpoch = 4;
inline constexpr std::uint64_t kFuzzPlan = 0xABCDEF;
inline constexpr FrameId kFuzzFrame{FrameKind::kGradient, ChunkId{2}, MicroId{3}, 7};
inline constexpr Tag kFuzzTag = Tag{2} << 40 | Tag{2} << 24 | 3;  // the frame's tag

}  // namespace motley
