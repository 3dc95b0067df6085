// The last link of a chain: what the inner codec wrote, as one Zstandard frame (RFC 8878) that
// declares its content size.
#pragma once

#include <memory>

#include "compression/codec.h"

namespace motley {

inline constexpr int kZstdLevelMin = 1;
inline constexpr int kZstdLevelMax = 19;

// REQUIRES: kZstdLevelMin <= level <= kZstdLevelMax. The inner codec's messages must have the size
// bytes_max() exactly, as those of all first links have: that is what a decoder checks against.
[[nodiscard]] std::unique_ptr<const Codec> make_zstd_codec(std::unique_ptr<const Codec> inner,
                                                           int level);

}  // namespace motley
