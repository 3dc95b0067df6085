// A codec whose messages depend in size on nothing but the count of values, as those of all first
// links of a chain but topk do: each is a pair of kernels that works on whole slices.
//
// A message is also the messages of its pieces, one behind the other. What goes over a slice more
// than once goes over it piece by piece, so that each piece stays in the nearest cache and the
// slice crosses the memory bus once.
#pragma once

#include <memory>

#include "compression/codec.h"

namespace motley {

// 2 KiB as fp32, of which the nearest cache holds several and the next pieces beside; a multiple of
// the block of every format.
inline constexpr std::size_t kPieceValues = 512;

struct FixedSizeFormat {
  const char* name;
  std::size_t (*bytes)(std::size_t count);  // of a message of that many values
  // wire_B has exactly that many bytes, at any alignment. Any bytes decode to some values.
  void (*encode)(std::span<const float> values_N, std::byte* wire_B);
  void (*decode)(const std::byte* wire_B, std::span<float> values_N);
};

// bytes_max() is exact. Decoding refuses every other size.
[[nodiscard]] std::unique_ptr<const Codec> make_fixed_size_codec(const FixedSizeFormat& format);

}  // namespace motley
