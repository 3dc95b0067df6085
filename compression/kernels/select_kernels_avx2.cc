// Sixty-four values at a time, one word of bits; the scalar reference processes the rest. Functions
// have their own target attribute, so the file compiles without -mavx2 and the implementation is
// selected at run time. The target excludes fused multiply-add, so that products and sums are not
// contracted.
#include "compression/kernels/select_kernels_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>

#define MOTLEY_AVX2 __attribute__((target("avx2")))

namespace motley {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kWordValues = 64;

// The processor's own prefetching stops at each 4 KiB page, where loops over two or three slices at
// once stall. 2 KiB ahead is the best of 0.5 to 16 KiB tried.
constexpr std::uintptr_t kAheadBytes = 2048;

std::size_t whole_words(std::size_t count) {
  return count - count % kWordValues;
}

// Prefetches the word of values that is kAheadBytes after this one. It may be beyond the slice's
// end: a prefetch never faults.
inline void prefetch_ahead(const float* word) {
  constexpr std::uintptr_t kLineBytes = 64;
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(word) + kAheadBytes;
  for (std::uintptr_t line = 0; line < kWordValues * sizeof(float); line += kLineBytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + line));
  }
}

// Marks `count` values in whole words; row_at(i) returns those from i on, computed from the slices.
template <class RowAt, class... Slices>
MOTLEY_AVX2 inline void mark_rows(std::size_t count,
                                  std::uint32_t threshold_bits,
                                  std::uint64_t* words,
                                  const RowAt& row_at,
                                  Slices... slices) {
  const __m256i magnitude_mask = _mm256_set1_epi32(0x7FFFFFFF);
  const __m256i below = _mm256_set1_epi32(static_cast<int>(threshold_bits - 1));
  for (std::size_t first = 0; first < count; first += kWordValues) {
    std::uint64_t word = 0;
    (prefetch_ahead(slices + first), ...);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kWordValues; i += kLanes) {
      const __m256i magnitude =
          _mm256_and_si256(_mm256_castps_si256(row_at(first + i)), magnitude_mask);
      const __m256 large = _mm256_castsi256_ps(_mm256_cmpgt_epi32(magnitude, below));
      word |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_ps(large))} << i;
    }
    *words++ = word;
  }
}

MOTLEY_AVX2 void mark(std::span<const float> values_N,
                      std::uint32_t threshold_bits,
                      std::uint64_t* words) {
  const std::size_t whole = whole_words(values_N.size());
  const float* values = values_N.data();
  const auto row_at = [=](std::size_t i) MOTLEY_AVX2 { return _mm256_loadu_ps(values + i); };
  mark_rows(whole, threshold_bits, words, row_at, values);
  scalar_select_kernels().mark(values_N.subspan(whole), threshold_bits,
                               words + whole / kWordValues);
}

MOTLEY_AVX2 void add_and_mark(std::span<const float> gradient_N,
                              std::span<float> residual_N,
                              std::uint32_t threshold_bits,
                              std::uint64_t* words) {
  const std::size_t whole = whole_words(residual_N.size());
  const float* gradient = gradient_N.data();
  float* residual = residual_N.data();
  const auto row_at = [=](std::size_t i) MOTLEY_AVX2 {
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(residual + i), _mm256_loadu_ps(gradient + i));
    _mm256_storeu_ps(residual + i, sum);
    return sum;
  };
  mark_rows(whole, threshold_bits, words, row_at, gradient, residual);
  scalar_select_kernels().add_and_mark(gradient_N.subspan(whole), residual_N.subspan(whole),
                                       threshold_bits, words + whole / kWordValues);
}

MOTLEY_AVX2 void gather_and_mark(std::span<const float> gradient_N,
                                 float momentum,
                                 std::span<float> velocity_N,
                                 std::span<float> residual_N,
                                 std::uint32_t threshold_bits,
                                 std::uint64_t* words) {
  const std::size_t whole = whole_words(residual_N.size());
  const float* gradient = gradient_N.data();
  float* velocity = velocity_N.data();
  float* residual = residual_N.data();
  const __m256 factor = _mm256_set1_ps(momentum);
  const auto row_at = [=](std::size_t i) MOTLEY_AVX2 {
    const __m256 kept = _mm256_mul_ps(factor, _mm256_loadu_ps(velocity + i));
    const __m256 faster = _mm256_add_ps(kept, _mm256_loadu_ps(gradient + i));
    _mm256_storeu_ps(velocity + i, faster);
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(residual + i), faster);
    _mm256_storeu_ps(residual + i, sum);
    return sum;
  };
  mark_rows(whole, threshold_bits, words, row_at, gradient, velocity, residual);
  scalar_select_kernels().gather_and_mark(gradient_N.subspan(whole), momentum,
                                          velocity_N.subspan(whole), residual_N.subspan(whole),
                                          threshold_bits, words + whole / kWordValues);
}

}  // namespace

const SelectKernels* avx2_select_kernels() {
  static constexpr SelectKernels kKernels = {mark, add_and_mark, gather_and_mark};
  return __builtin_cpu_supports("avx2") ? &kKernels : nullptr;
}

}  // namespace motley

#else

namespace motley {

const SelectKernels* avx2_select_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
