// Blocks of 128 values as small integers and one fp32 scale. Layout: docs/formats/frame.md.
//
// int8: code = x / scale rounded to nearest, ties to even, with scale = largest |x| / 127.
//   |x - decoded| <= (1/2 + 2^-15) scale for every value.
// int4: the block is multiplied by signs and rotated (compression/formats/hadamard.h):
//   r = H D x / 128; code = r / scale, -7 to 7, with scale = largest |r| / 7; decoded is
//   D H code scale. The root of the block's summed squares of (x - decoded) is at most
//   (1 + 2^-10) 64 max(scale, 2^-126) if every |x| is below 2^119; beyond, values stay finite.
//
// The scale is fp32, because all gradients of a block can be below 6e-8, which fp16 cannot
// represent; 2 more bytes for 128 values are 1.5 % of int8's size and 3 % of int4's. It is at least
// 2^-126, so that its inverse is finite; 0 for a block of zeros. For a block with an infinity or a
// NaN it is NaN, and so are all decoded values, which the step's vote detects.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "compression/codec/format_kernels.h"
#include "compression/formats/hadamard.h"

namespace motley {

inline constexpr std::size_t kBlockScaleBytes = 4;
inline constexpr std::size_t kInt8BlockBytes = kBlockScaleBytes + kBlockValues;
inline constexpr std::size_t kInt4BlockBytes = kBlockScaleBytes + kBlockValues / 2;

// The bytes of a message. int8's last block ends with its last value; int4's is padded with zeros.
[[nodiscard]] std::size_t int8_bytes(std::size_t count);
[[nodiscard]] std::size_t int4_bytes(std::size_t count);

inline constexpr float kInt8Largest = 127;
inline constexpr float kInt4Largest = 7;
// Scale limits that keep decoded values finite: the largest float with a finite product with 127,
// and one with a finite sum of 128 codes.
inline constexpr float kInt8ScaleMax = 0x1.020406p121F;
inline constexpr float kInt4ScaleMax = 0x1p117F;

struct BlockScale {
  float scale = 0;
  float inverse = 0;  // 0 if all codes are 0: a block of zeros, or not finite
};

// Returns the scale for the largest magnitude of a block, given as the bits of a float without its
// sign. Defined in the header so that every kernel compiles it for its own target.
[[nodiscard]] inline BlockScale block_scale(std::uint32_t magnitude_bits,
                                            float largest_code,
                                            float scale_max) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  if (magnitude_bits == 0) return {0, 0};
  if (magnitude_bits >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float scale =
      std::clamp(std::bit_cast<float>(magnitude_bits) / largest_code, FLT_MIN, scale_max);
  return {scale, 1 / scale};
}

struct BlockKernels {
  FormatKernels int8;
  FormatKernels int4;
};

// One value at a time: the reference, which the vector kernels match bit for bit.
[[nodiscard]] const BlockKernels& scalar_block_kernels();

// The fastest kernels that this processor supports.
[[nodiscard]] const FormatKernels& best_int8_kernels();
[[nodiscard]] const FormatKernels& best_int4_kernels();

}  // namespace motley
