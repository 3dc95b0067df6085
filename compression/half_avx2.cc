// Eight values at a time; the rest goes through the scalar reference. Functions carry their own
// target, so the file compiles without -mavx2 and the choice is made where it runs.
#include "compression/half_avx2.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define MOTLEY_AVX2 __attribute__((target("avx2,f16c")))

namespace motley {
namespace {

constexpr std::size_t kLanes = 8;
constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

std::size_t whole_lanes(std::size_t count) {
  return count - count % kLanes;
}

MOTLEY_AVX2 void fp16_encode(std::span<const float> values_N, std::byte* wire_B) {
  const std::size_t vector_count = whole_lanes(values_N.size());
  const __m256 magnitude_mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  const __m256 largest = _mm256_set1_ps(65504.0F);
  for (std::size_t i = 0; i < vector_count; i += kLanes) {
    const __m256 value = _mm256_loadu_ps(values_N.data() + i);
    const __m256 magnitude = _mm256_and_ps(value, magnitude_mask);
    // Ordered comparisons are false for NaN, so only finite overflow is replaced.
    const __m256 overflow = _mm256_and_ps(_mm256_cmp_ps(magnitude, largest, _CMP_GT_OQ),
                                          _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ));
    const __m256 saturated = _mm256_or_ps(_mm256_andnot_ps(magnitude_mask, value), largest);
    const __m256 kept = _mm256_blendv_ps(value, saturated, overflow);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(wire_B + 2 * i),
                     _mm256_cvtps_ph(kept, kNearestEven));
  }
  scalar_half_kernels().fp16_encode(values_N.subspan(vector_count), wire_B + 2 * vector_count);
}

MOTLEY_AVX2 void fp16_decode(const std::byte* wire_B, std::span<float> values_N) {
  const std::size_t vector_count = whole_lanes(values_N.size());
  for (std::size_t i = 0; i < vector_count; i += kLanes) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(wire_B + 2 * i));
    _mm256_storeu_ps(values_N.data() + i, _mm256_cvtph_ps(half));
  }
  scalar_half_kernels().fp16_decode(wire_B + 2 * vector_count, values_N.subspan(vector_count));
}

MOTLEY_AVX2 void bf16_encode(std::span<const float> values_N, std::byte* wire_B) {
  const std::size_t vector_count = whole_lanes(values_N.size());
  const __m256i magnitude_mask = _mm256_set1_epi32(0x7FFFFFFF);
  const __m256i infinity = _mm256_set1_epi32(0x7F800000);
  const __m256i infinity_below = _mm256_set1_epi32(0x7F7FFFFF);
  for (std::size_t i = 0; i < vector_count; i += kLanes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values_N.data() + i));
    const __m256i magnitude = _mm256_and_si256(bits, magnitude_mask);
    const __m256i sign = _mm256_srli_epi32(_mm256_andnot_si256(magnitude_mask, bits), 16);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 16), _mm256_set1_epi32(1));
    const __m256i sum =
        _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7FFF)), odd);
    __m256i half = _mm256_min_epi32(_mm256_srli_epi32(sum, 16), _mm256_set1_epi32(0x7F7F));
    // Not finite: truncated, and a NaN made quiet.
    const __m256i not_finite = _mm256_cmpgt_epi32(magnitude, infinity_below);
    const __m256i quiet =
        _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, infinity), _mm256_set1_epi32(0x40));
    half = _mm256_blendv_epi8(half, _mm256_or_si256(_mm256_srli_epi32(magnitude, 16), quiet),
                              not_finite);
    half = _mm256_or_si256(half, sign);
    // packus works within 128-bit halves; the permutation brings the two results together.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(half, half), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(wire_B + 2 * i), _mm256_castsi256_si128(packed));
  }
  scalar_half_kernels().bf16_encode(values_N.subspan(vector_count), wire_B + 2 * vector_count);
}

MOTLEY_AVX2 void bf16_decode(const std::byte* wire_B, std::span<float> values_N) {
  const std::size_t vector_count = whole_lanes(values_N.size());
  for (std::size_t i = 0; i < vector_count; i += kLanes) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(wire_B + 2 * i));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values_N.data() + i), bits);
  }
  scalar_half_kernels().bf16_decode(wire_B + 2 * vector_count, values_N.subspan(vector_count));
}

// __builtin_cpu_supports("f16c") is unknown to clang 14.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const HalfKernels* avx2_half_kernels() {
  static constexpr HalfKernels kKernels = {fp16_encode, fp16_decode, bf16_encode, bf16_decode};
  const bool present = __builtin_cpu_supports("avx2") && has_f16c();
  return present ? &kKernels : nullptr;
}

}  // namespace motley

#else

namespace motley {

const HalfKernels* avx2_half_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
