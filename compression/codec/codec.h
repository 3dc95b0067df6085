// A Codec turns one dense fp32 slice into bytes for one link, and back.
// Safe to share between threads; nothing is carried from one call to the next. Chains and their
// wire layout: docs/formats/frame.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace motley {

class Codec {
 public:
  virtual ~Codec() = default;

  // The text that made it: "none", "fp16", "topk(0.01)|int8|zstd(1)".
  [[nodiscard]] virtual std::string name() const = 0;

  // Upper bound, in bytes, of what encode() writes for `count` values.
  [[nodiscard]] virtual std::size_t bytes_max(std::size_t count) const = 0;

  // Returns whether encode() writes bytes_max() bytes whatever the values are.
  [[nodiscard]] virtual bool has_fixed_size() const = 0;

  // Writes values_N to wire_B and returns the bytes written. Cannot fail: finite or not, any value
  // has an encoding, and what is not finite does not come back as if it were. REQUIRES:
  // wire_B.size() >= bytes_max(values_N.size()).
  virtual std::size_t encode(std::span<const float> values_N,
                             std::span<std::byte> wire_B) const = 0;

  // Reads exactly values_N.size() values. The peer is not trusted: kCorrupt on any malformed input;
  // values_N is then unspecified.
  virtual Result<void> decode(std::span<const std::byte> wire_B,
                              std::span<float> values_N) const = 0;

  // Adds what decode() would write to sum_N, so that reducing over peers needs no second slice.
  // Fails as decode() does; sum_N is then unspecified.
  virtual Result<void> decode_add(std::span<const std::byte> wire_B,
                                  std::span<float> sum_N) const = 0;
};

}  // namespace motley
