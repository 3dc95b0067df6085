#include "compression/kernels/select_kernels.h"

#include <bit>
#include <cstddef>

namespace motley {
namespace {

// Marks `count` values; requests each once and in order.
template <class ValueAt>
void mark_each(std::size_t count,
               std::uint32_t threshold_bits,
               std::uint64_t* words,
               const ValueAt& value_at) {
  for (std::size_t first = 0; first < count; first += 64) {
    std::uint64_t word = 0;
    for (std::size_t i = first; i < count && i < first + 64; ++i) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value_at(i)) & 0x7FFFFFFFU;
      word |= std::uint64_t{magnitude >= threshold_bits} << (i - first);
    }
    *words++ = word;
  }
}

void mark(std::span<const float> values_N, std::uint32_t threshold_bits, std::uint64_t* words) {
  mark_each(values_N.size(), threshold_bits, words, [&](std::size_t i) { return values_N[i]; });
}

void add_and_mark(std::span<const float> gradient_N,
                  std::span<float> residual_N,
                  std::uint32_t threshold_bits,
                  std::uint64_t* words) {
  mark_each(residual_N.size(), threshold_bits, words,
            [&](std::size_t i) { return residual_N[i] += gradient_N[i]; });
}

void gather_and_mark(std::span<const float> gradient_N,
                     float momentum,
                     std::span<float> velocity_N,
                     std::span<float> residual_N,
                     std::uint32_t threshold_bits,
                     std::uint64_t* words) {
  mark_each(residual_N.size(), threshold_bits, words, [&](std::size_t i) {
    velocity_N[i] = momentum * velocity_N[i] + gradient_N[i];
    return residual_N[i] += velocity_N[i];
  });
}

}  // namespace

const SelectKernels& scalar_select_kernels() {
  static constexpr SelectKernels kKernels = {mark, add_and_mark, gather_and_mark};
  return kKernels;
}

}  // namespace motley
