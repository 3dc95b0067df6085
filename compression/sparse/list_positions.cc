#include "compression/sparse/list_positions.h"

#include <array>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>

#define MOTLEY_AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))
#endif

namespace motley {
namespace {

std::size_t list_each(std::span<const std::uint64_t> words, std::uint16_t* places) {
  std::uint16_t* to = places;
  for (std::size_t word = 0; word < words.size(); ++word) {
    for (std::uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
      *to++ = static_cast<std::uint16_t>(64 * word + static_cast<unsigned>(std::countr_zero(bits)));
    }
  }
  return static_cast<std::size_t>(to - places);
}

#if defined(__x86_64__)

alignas(64) constexpr auto kLaneNumbers = [] {
  std::array<std::uint16_t, 32> numbers{};
  for (std::uint16_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  return numbers;
}();

// Compresses in a register and stores all of it: masked stores are slow on some processors.
MOTLEY_AVX512 std::size_t list_rows(std::span<const std::uint64_t> words, std::uint16_t* places) {
  const __m512i step = _mm512_set1_epi16(32);
  __m512i numbers = _mm512_load_si512(kLaneNumbers.data());
  std::uint16_t* to = places;
  for (const std::uint64_t word : words) {
    for (const auto half :
         {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)}) {
      _mm512_storeu_si512(to, _mm512_maskz_compress_epi16(half, numbers));
      to += std::popcount(half);
      numbers = _mm512_add_epi16(numbers, step);
    }
  }
  return static_cast<std::size_t>(to - places);
}

#endif

}  // namespace

ListPositions scalar_list_positions() {
  return list_each;
}

ListPositions avx512_list_positions() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2") &&
      __builtin_cpu_supports("popcnt")) {
    return list_rows;
  }
#endif
  return nullptr;
}

ListPositions best_list_positions() {
  const ListPositions avx512 = avx512_list_positions();
  return avx512 != nullptr ? avx512 : list_each;
}

}  // namespace motley
