// Sixty-four values at a time, one word of bits; the scalar reference processes the rest. Functions
// have their own target attribute, so the file compiles without -mavx512f and the implementation is
// selected at run time. It is compiled without contraction of products and sums.
#include "compression/kernels/select_kernels_avx512.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>

#include "compression/kernels/prefetch.h"

#define MOTLEY_AVX512 __attribute__((target("avx512f")))

namespace motley {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kWordValues = 64;

std::size_t whole_words(std::size_t count) {
  return count - count % kWordValues;
}

// Marks `count` values in whole words; row_at(i) returns those from i on, computed from the slices.
template <class RowAt, class... Slices>
MOTLEY_AVX512 inline void mark_rows(std::size_t count,
                                    std::uint32_t threshold_bits,
                                    std::uint64_t* words,
                                    std::uintptr_t ahead_bytes,
                                    const RowAt& row_at,
                                    Slices... slices) {
  const __m512i magnitude_mask = _mm512_set1_epi32(0x7FFFFFFF);
  const __m512i threshold = _mm512_set1_epi32(static_cast<int>(threshold_bits));
  for (std::size_t first = 0; first < count; first += kWordValues) {
    std::uint64_t word = 0;
    (prefetch_ahead(slices + first, ahead_bytes, kWordValues * sizeof(float)), ...);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kWordValues; i += kLanes) {
      const __m512i magnitude =
          _mm512_and_si512(_mm512_castps_si512(row_at(first + i)), magnitude_mask);
      word |= std::uint64_t{_mm512_cmpge_epi32_mask(magnitude, threshold)} << i;
    }
    *words++ = word;
  }
}

MOTLEY_AVX512 void mark(std::span<const float> values_N,
                        std::uint32_t threshold_bits,
                        std::uint64_t* words) {
  const std::size_t whole = whole_words(values_N.size());
  const float* values = values_N.data();
  const auto row_at = [=](std::size_t i) MOTLEY_AVX512 { return _mm512_loadu_ps(values + i); };
  mark_rows(whole, threshold_bits, words, kReadAheadBytes, row_at, values);
  scalar_select_kernels().mark(values_N.subspan(whole), threshold_bits,
                               words + whole / kWordValues);
}

MOTLEY_AVX512 void add_and_mark(std::span<const float> gradient_N,
                                std::span<float> residual_N,
                                std::uint32_t threshold_bits,
                                std::uint64_t* words) {
  const std::size_t whole = whole_words(residual_N.size());
  const float* gradient = gradient_N.data();
  float* residual = residual_N.data();
  const auto row_at = [=](std::size_t i) MOTLEY_AVX512 {
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(residual + i), _mm512_loadu_ps(gradient + i));
    _mm512_storeu_ps(residual + i, sum);
    return sum;
  };
  mark_rows(whole, threshold_bits, words, kUpdateAheadBytes, row_at, gradient, residual);
  scalar_select_kernels().add_and_mark(gradient_N.subspan(whole), residual_N.subspan(whole),
                                       threshold_bits, words + whole / kWordValues);
}

MOTLEY_AVX512 void gather_and_mark(std::span<const float> gradient_N,
                                   float momentum,
                                   std::span<float> velocity_N,
                                   std::span<float> residual_N,
                                   std::uint32_t threshold_bits,
                                   std::uint64_t* words) {
  const std::size_t whole = whole_words(residual_N.size());
  const float* gradient = gradient_N.data();
  float* velocity = velocity_N.data();
  float* residual = residual_N.data();
  const __m512 factor = _mm512_set1_ps(momentum);
  const auto row_at = [=](std::size_t i) MOTLEY_AVX512 {
    const __m512 kept = _mm512_mul_ps(factor, _mm512_loadu_ps(velocity + i));
    const __m512 faster = _mm512_add_ps(kept, _mm512_loadu_ps(gradient + i));
    _mm512_storeu_ps(velocity + i, faster);
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(residual + i), faster);
    _mm512_storeu_ps(residual + i, sum);
    return sum;
  };
  mark_rows(whole, threshold_bits, words, kUpdateAheadBytes, row_at, gradient, velocity, residual);
  scalar_select_kernels().gather_and_mark(gradient_N.subspan(whole), momentum,
                                          velocity_N.subspan(whole), residual_N.subspan(whole),
                                          threshold_bits, words + whole / kWordValues);
}

}  // namespace

const SelectKernels* avx512_select_kernels() {
  static constexpr SelectKernels kKernels = {mark, add_and_mark, gather_and_mark};
  return __builtin_cpu_supports("avx512f") ? &kKernels : nullptr;
}

}  // namespace motley

#else

namespace motley {

const SelectKernels* avx512_select_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
