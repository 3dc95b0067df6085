// Tests on the two halves of 16-bit words: whether they may be two one-byte tokens, or are
// byte-swapped. For independent tokens, however few and however frequent each, each answer is wrong
// with a probability of at most 1e-6. docs/formats/data.md has the conditions.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace motley {

// Counts how often each byte is the lower half of a word (at even positions) and the upper one.
// Words of two equal bytes are omitted: they occur equally often at both positions, so that padding
// with 0 would hide the other tokens.
class HalfCounts {
 public:
  // Samples up to 2 MiB of the bytes.
  explicit HalfCounts(std::span<const std::byte> bytes);

  // The number of counted words.
  [[nodiscard]] double words() const { return words_; }

  // The total variation distance between the two halves: from 0, equal distributions, to 1,
  // disjoint ones. REQUIRES: words() > 0.
  [[nodiscard]] double distance() const;

  // Whether the halves are closer to each other than those of tokens with a distance of 0.2 or
  // more.
  [[nodiscard]] bool are_alike() const;

  // Whether the lower halves may be uniformly random, like those of equally likely tokens from 0 to
  // some large number.
  [[nodiscard]] bool may_be_uniform() const;

 private:
  static constexpr std::size_t kBytes = 256;

  std::array<double, kBytes> lower_{};
  std::array<double, kBytes> upper_{};
  double words_ = 0;
};

// Whether more different pairs of tokens agree in the lower half alone than in the upper half alone
// (for tokens numbered from 0 more agree in the upper one), or all lower halves are the same.
// Samples up to 2 MiB of the bytes.
[[nodiscard]] bool are_halves_swapped(std::span<const std::byte> bytes);

}  // namespace motley
