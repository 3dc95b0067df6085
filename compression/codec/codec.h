// A Codec encodes one dense fp32 slice into bytes for one link, and decodes it. Stateless and safe
// to share between threads. Chains and their wire layout: docs/formats/frame.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace motley {

class Codec {
 public:
  virtual ~Codec() = default;

  // The codec's chain: "none", "fp16", "topk(0.01)|int8|zstd(1)".
  [[nodiscard]] virtual std::string name() const = 0;

  // Upper bound, in bytes, of what encode() writes for `count` values.
  [[nodiscard]] virtual std::size_t bytes_max(std::size_t count) const = 0;

  // Returns whether encode() always writes bytes_max() bytes, whatever the values.
  [[nodiscard]] virtual bool has_fixed_size() const = 0;

  // Writes values_N to wire_B and returns the bytes written. Cannot fail: every value has an
  // encoding, and a value that is not finite never decodes to a finite one. REQUIRES: wire_B.size()
  // >= bytes_max(values_N.size()).
  virtual std::size_t encode(std::span<const float> values_N,
                             std::span<std::byte> wire_B) const = 0;

  // Reads exactly values_N.size() values. Untrusted input: kCorrupt on any malformed bytes;
  // values_N is then unspecified.
  virtual Result<void> decode(std::span<const std::byte> wire_B,
                              std::span<float> values_N) const = 0;

  // Adds the decoded values to sum_N, so that a reduction over peers needs no second slice. Fails
  // as decode() does; sum_N is then unspecified.
  virtual Result<void> decode_add(std::span<const std::byte> wire_B,
                                  std::span<float> sum_N) const = 0;
};

}  // namespace motley
