// Permutation: a shuffled order of 0 … size-1 without storing it. A balanced Feistel network (Luby
// and Rackoff, 1988) over Philox permutes the next power of four; values outside `size` are
// permuted again until they are inside (cycle walking: Black and Rogaway, 2002), so it remains a
// bijection.
#pragma once

#include <cstdint>

namespace motley {

class Permutation {
 public:
  // A pure function of the arguments. REQUIRES: size >= 1.
  Permutation(std::uint64_t size, std::uint64_t key, std::uint64_t stream);

  // REQUIRES: index < size. Takes fewer than four rounds of the network on average, because its
  // range is at most four times `size`.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const;

 private:
  [[nodiscard]] std::uint64_t permute_once(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  std::uint64_t stream_;
  int half_bits_;  // the network permutes 2 × half_bits_ bits
};

}  // namespace motley
