// A codec whose messages depend in size on nothing but the count of values, as those of all first
// links of a chain but topk do: each is a pair of kernels that works on whole slices.
#pragma once

#include <memory>

#include "compression/codec/codec.h"
#include "compression/codec/format_kernels.h"

namespace motley {

// A format of fixed size has kernels and a count of the bytes that a message of `count` values
// takes.
struct FixedSizeFormat : FormatKernels {
  const char* name = nullptr;
  std::size_t (*bytes)(std::size_t count) = nullptr;
};

// kCorrupt where a message of `count` values has not the bytes that they take.
[[nodiscard]] Result<void> check_message_bytes(const char* codec,
                                               std::size_t bytes,
                                               std::size_t expected_bytes,
                                               std::size_t count);

// bytes_max() is exact. Decoding refuses every other size.
[[nodiscard]] std::unique_ptr<const Codec> make_fixed_size_codec(const FixedSizeFormat& format);

}  // namespace motley
