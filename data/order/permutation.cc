#include "data/order/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/philox.h"

namespace motley {
namespace {

// Four suffice for pseudo-random halves; small ranges have few bits per half and need more.
constexpr std::uint64_t kRounds = 8;

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key, std::uint64_t stream)
    : size_(size),
      key_(key),
      stream_(stream),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2)) {
  MOTLEY_CHECK(size >= 1, "a permutation of nothing");
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  MOTLEY_CHECK(index < size_, "index {} of {}", index, size_);
  std::uint64_t value = permute_once(index);
  while (value >= size_) value = permute_once(value);
  return value;
}

std::uint64_t Permutation::permute_once(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    // A half has at most 32 bits, so round and half fit one block number.
    const std::uint64_t mixed = philox4x32(key_, stream_, (round << 32) | right)[0];
    left = std::exchange(right, left ^ (mixed & mask));
  }
  return (left << half_bits_) | right;
}

}  // namespace motley
