// The bytes of lowrank(RANK): a slice as matrices of up to 256 × 256 values, each as the factors of
// its approximation (compression/lowrank/low_rank_fit.h). Layout: docs/formats/frame.md.
//
// A slice knows nothing of the tensors that it is a part of. Rows of 256 values meet those of a
// tensor where its width goes with 256; where it does not, a direction of the tensor shows as a few
// of the slice, and the rank must be that much higher.
#pragma once

#include <cstddef>
#include <span>

#include "compression/codec/fixed_size_codec.h"
#include "compression/kernels/matrix_kernels.h"
#include "compression/lowrank/low_rank_fit.h"

namespace motley {

inline constexpr std::size_t kMatrixValues = kMatrixSide * kMatrixSide;

// Returns the shape of a matrix that holds `count` values row by row: columns are the least power
// of two, from 16 to 256, whose square holds them. REQUIRES: count <= kMatrixValues.
[[nodiscard]] MatrixShape low_rank_shape(std::size_t count);

// May be shared between threads; takes 200 KiB of the stack. Reading has the same result on every
// machine, and so has writing.
class LowRankCoder {
 public:
  // factors: how the factors are written, and the values of matrices that are too small to
  // have any. REQUIRES: 1 <= rank <= kRankMax.
  LowRankCoder(std::size_t rank,
               const FixedSizeFormat& factors,
               const MatrixKernels& kernels = best_matrix_kernels());

  [[nodiscard]] std::size_t rank() const { return rank_; }

  [[nodiscard]] const FixedSizeFormat& factors() const { return format_; }

  // The bytes of a message.
  [[nodiscard]] std::size_t bytes(std::size_t count) const;

  // These do what compression/codec/format_kernels.h says of a format: the wire side has exactly
  // the bytes of N values. A matrix that holds an infinity or a NaN comes back as NaNs.
  void encode(std::span<const float> values_N, std::byte* wire_B) const;
  void decode(const std::byte* wire_B, std::span<float> values_N) const;
  void decode_add(const std::byte* wire_B, std::span<float> sum_N) const;
  void encode_feedback(std::span<const float> gradient_N,
                       std::span<float> residual_N,
                       std::byte* wire_B) const;

 private:
  // Returns whether a matrix of so many values is written as it is, because its factors would be
  // more than half.
  [[nodiscard]] bool plain(std::size_t count) const;
  [[nodiscard]] std::size_t matrix_bytes(std::size_t count) const;

  void encode_matrix(std::span<const float> values_N, std::byte* wire_B) const;

  // Calls use(values, first) for pieces of what the message of a matrix of `count` values means.
  template <class Use>
  void read_matrix(const std::byte* wire_B, std::size_t count, const Use& use) const;

  std::size_t rank_;
  FixedSizeFormat format_;
  const MatrixKernels& kernels_;
};

}  // namespace motley
