// TensorDigest: the part of a tensor that a reference stores, and the deviation of two tensors by
// their digests. Python's motley.digest computes the same; rationale: docs/numerics.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace motley {

struct TensorDigest {
  static constexpr std::size_t kProjections = 4;

  std::size_t count = 0;
  std::size_t nonfinite = 0;  // elements that are not finite; they count as 0
  double norm = 0;
  double largest = 0;  // of the absolute values
  // Sums with seeded signs. For a difference of tensors their root mean square is about its norm.
  std::array<double, kProjections> projections = {};
  std::vector<double> samples;  // at sampled_places()
};

[[nodiscard]] TensorDigest digest_of(std::span<const float> values,
                                     std::uint64_t seed,
                                     std::size_t samples);

// An estimate of the norm of their difference, as a share of the norm of `right`, or of `least` if
// that is larger; infinite if they have different numbers of elements.
[[nodiscard]] double deviation(const TensorDigest& found, const TensorDigest& right, double least);

}  // namespace motley
