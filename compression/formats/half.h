// 16-bit floats on the wire: IEEE binary16 ("fp16") and bfloat16 ("bf16"), little-endian.
//
// Rounding is to nearest, ties to even. Finite values stay finite: one beyond the format's largest
// finite value becomes that value (±65504 for fp16, ±0x1.FEp127 for bf16), so that a codec never
// introduces an infinity. Infinities stay; a NaN stays a NaN (quiet, with sign and upper payload
// bits preserved).
#pragma once

#include <cstddef>
#include <cstdint>

#include "compression/codec/format_kernels.h"

namespace motley {

[[nodiscard]] inline std::size_t half_bytes(std::size_t count) {
  return 2 * count;
}

// One value. These define the format: the vector kernels match them bit for bit.
[[nodiscard]] std::uint16_t fp16_from_float(float value);
[[nodiscard]] float float_from_fp16(std::uint16_t half);
[[nodiscard]] std::uint16_t bf16_from_float(float value);
[[nodiscard]] float float_from_bf16(std::uint16_t half);

struct HalfKernels {
  FormatKernels fp16;
  FormatKernels bf16;
};

// One value at a time: the reference.
[[nodiscard]] const HalfKernels& scalar_half_kernels();

// The fastest kernels that this processor supports.
[[nodiscard]] const HalfKernels& best_half_kernels();

}  // namespace motley
