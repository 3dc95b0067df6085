// A codec whose messages depend in size on nothing but the count of values, as those of all first
// links of a chain do: each is a pair of kernels that works on whole slices.
#pragma once

#include <memory>

#include "compression/codec.h"

namespace motley {

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
