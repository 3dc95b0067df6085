// 16-bit floats on the wire: IEEE binary16 ("fp16") and bfloat16 ("bf16"), little-endian.
//
// Rounding is to nearest, ties to even. What is finite stays finite: a value beyond the largest
// finite one of the format becomes that one (±65504 for fp16, ±0x1.FEp127 for bf16), so that a
// codec never turns an overflow into an infinity that a training step would not have had.
// Infinities stay; a NaN stays a NaN (made quiet, sign and upper payload bits kept).
#pragma once

#include <cstddef>
#include <cstdint>

#include "compression/codec/format_kernels.h"

namespace motley {

[[nodiscard]] inline std::size_t half_bytes(std::size_t count) {
  return 2 * count;
}

// One value. These define the format: the vector kernels equal them bit for bit.
[[nodiscard]] std::uint16_t fp16_from_float(float value);
[[nodiscard]] float float_from_fp16(std::uint16_t half);
[[nodiscard]] std::uint16_t bf16_from_float(float value);
[[nodiscard]] float float_from_bf16(std::uint16_t half);

struct HalfKernels {
  FormatKernels fp16;
  FormatKernels bf16;
};

// One value after the other: the reference.
[[nodiscard]] const HalfKernels& scalar_half_kernels();

// The fastest that this processor has.
[[nodiscard]] const HalfKernels& best_half_kernels();

}  // namespace motley
