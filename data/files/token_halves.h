// The two halves of 16-bit words: whether they may as well be two tokens of one byte each, or stand
// the other way round. Of tokens that are drawn independently of each other, however few and
// however often each, each answer is wrong with a chance of at most 1e-6. docs/formats/data.md says
// of which ones.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace motley {

// How often each byte is the lower half of a word (at even places) and the upper one. Words of two
// equal bytes are left out, since they are as often at both places whatever they are: padding with
// 0 would hide what the other tokens are.
class HalfCounts {
 public:
  // Of up to 2 MiB of the bytes.
  explicit HalfCounts(std::span<const std::byte> bytes);

  // Of how many words.
  [[nodiscard]] double words() const { return words_; }

  // The total variation distance between the two halves: from 0, each byte as often in both, to 1,
  // no byte in both. REQUIRES: words() > 0.
  [[nodiscard]] double distance() const;

  // Whether the halves are nearer to each other than tokens allow whose halves have a distance of
  // 0.2 or more.
  [[nodiscard]] bool are_alike() const;

  // Whether the lower halves may be random ones that are all about as likely, as those of tokens
  // from 0 to some large number are that are as likely as each other.
  [[nodiscard]] bool may_be_uniform() const;

 private:
  static constexpr std::size_t kBytes = 256;

  std::array<double, kBytes> lower_{};
  std::array<double, kBytes> upper_{};
  double words_ = 0;
};

// Whether more different pairs of tokens agree in the lower half alone than in the upper half alone
// (of numbers from 0 on more agree in the upper one), or all lower halves are the same. Of up to
// 2 MiB of the bytes.
[[nodiscard]] bool are_halves_swapped(std::span<const std::byte> bytes);

}  // namespace motley
