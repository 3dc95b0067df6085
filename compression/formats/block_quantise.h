// Blocks of 128 values as small integers and one fp32 scale. Layout: docs/formats/frame.md.
//
// int8: code = x / scale rounded to nearest, ties to even, with scale = largest |x| / 127.
//   |x - decoded| <= (1/2 + 2^-15) scale for every value.
// int4: the block is multiplied by signs and rotated (compression/formats/hadamard.h), so that r =
// H D x /
//   128; code = r / scale, -7 to 7, with scale = largest |r| / 7; decoded is D H code scale.
//   The root of the block's summed squares of (x - decoded) is at most (1 + 2^-10) 64
//   max(scale, 2^-126) where every |x| is below 2^119; beyond, values stay finite.
//
// A scale is fp32: gradients of a block can all lie below 6e-8, where fp16 has no more bits to
// give, and 2 bytes more for 128 values are 1.5 % of int8's size and 3 % of int4's. It is not below
// 2^-126, so that its inverse is finite. Of a block of zeros it is 0. Of a block that holds an
// infinity or a NaN it is NaN, and so is all that is decoded: the step's vote sees that.
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

// The bytes of a message. The last block of int8 ends with its last value; that of int4 is filled
// with zeros.
[[nodiscard]] std::size_t int8_bytes(std::size_t count);
[[nodiscard]] std::size_t int4_bytes(std::size_t count);

inline constexpr float kInt8Largest = 127;
inline constexpr float kInt4Largest = 7;
// These keep all that is decoded of finite values finite: the largest float whose product with 127
// is, and one with which the sum of 128 codes is.
inline constexpr float kInt8ScaleMax = 0x1.020406p121F;
inline constexpr float kInt4ScaleMax = 0x1p117F;

struct BlockScale {
  float scale = 0;
  float inverse = 0;  // 0 where every code is 0: nothing but zeros, or not finite
};

// Returns the scale for the largest magnitude of a block, given as the bits of a float without its
// sign. It stands in the header so that every kernel compiles it for its own processor.
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

// One value after the other: the reference, which the vector kernels equal bit for bit.
[[nodiscard]] const BlockKernels& scalar_block_kernels();

// The fastest that this processor has.
[[nodiscard]] const BlockKernels& best_block_kernels();

}  // namespace motley
