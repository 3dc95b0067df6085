// A codec with a message size that depends only on the count of values, as for every first link of
// a chain except topk: a pair of kernels on whole slices.
#pragma once

#include <memory>

#include "compression/codec/codec.h"
#include "compression/codec/format_kernels.h"

namespace motley {

// A format of fixed size: its kernels, and the bytes of a message of `count` values.
struct FixedSizeFormat : FormatKernels {
  const char* name = nullptr;
  std::size_t (*bytes)(std::size_t count) = nullptr;
};

// kCorrupt if a message does not have the expected bytes.
[[nodiscard]] Result<void> check_message_bytes(const char* codec,
                                               std::size_t bytes,
                                               std::size_t expected_bytes,
                                               std::size_t count);

// bytes_max() is exact. Decoding rejects every other size.
[[nodiscard]] std::unique_ptr<const Codec> make_fixed_size_codec(const FixedSizeFormat& format);

}  // namespace motley
