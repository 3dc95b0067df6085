// TensorDigest: what a reference keeps of a tensor, and how far two tensors are apart by their
// digests. Python's motley.digest computes the same; docs/numerics.md tells why these.
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
  // Sums with seeded signs: of a difference they are as large as its norm, in the mean of their
  // squares.
  std::array<double, kProjections> projections = {};
  std::vector<double> samples;  // at sampled_places()
};

[[nodiscard]] TensorDigest digest_of(std::span<const float> values,
                                     std::uint64_t seed,
                                     std::size_t samples);

// About the norm of their difference as a share of the norm of `right`, or of `least` where that is
// more; infinite where they have other numbers of elements.
[[nodiscard]] double deviation(const TensorDigest& found, const TensorDigest& right, double least);

}  // namespace motley
