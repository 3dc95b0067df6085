// Eight values at a time; the scalar reference processes the rest. Functions have their own target
// attribute, so the file compiles without -mavx2 and the implementation is selected at run time.
#include "compression/formats/half_avx2.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "compression/kernels/prefetch.h"

#define MOTLEY_AVX2 __attribute__((target("avx2,f16c")))

namespace motley {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::uintptr_t kRowBytes = kLanes * sizeof(float);
constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

std::size_t whole_lanes(std::size_t count) {
  return count - count % kLanes;
}

struct Fp16 {
  MOTLEY_AVX2 static __m128i narrow(__m256 row) {
    const __m256 magnitude_mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
    const __m256 largest = _mm256_set1_ps(65504.0F);
    const __m256 magnitude = _mm256_and_ps(row, magnitude_mask);
    // Ordered comparisons are false for NaN, so only finite overflow is replaced.
    const __m256 overflow = _mm256_and_ps(_mm256_cmp_ps(magnitude, largest, _CMP_GT_OQ),
                                          _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ));
    const __m256 saturated = _mm256_or_ps(_mm256_andnot_ps(magnitude_mask, row), largest);
    return _mm256_cvtps_ph(_mm256_blendv_ps(row, saturated, overflow), kNearestEven);
  }

  MOTLEY_AVX2 static __m256 widen(__m128i halves) { return _mm256_cvtph_ps(halves); }

  static const FormatKernels& scalar() { return scalar_half_kernels().fp16; }
};

struct Bf16 {
  MOTLEY_AVX2 static __m128i narrow(__m256 row) {
    const __m256i magnitude_mask = _mm256_set1_epi32(0x7FFFFFFF);
    const __m256i infinity = _mm256_set1_epi32(0x7F800000);
    const __m256i infinity_below = _mm256_set1_epi32(0x7F7FFFFF);
    const __m256i bits = _mm256_castps_si256(row);
    const __m256i magnitude = _mm256_and_si256(bits, magnitude_mask);
    const __m256i sign = _mm256_srli_epi32(_mm256_andnot_si256(magnitude_mask, bits), 16);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 16), _mm256_set1_epi32(1));
    const __m256i sum =
        _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7FFF)), odd);
    __m256i half = _mm256_min_epi32(_mm256_srli_epi32(sum, 16), _mm256_set1_epi32(0x7F7F));
    // Not finite: truncated, and NaNs made quiet.
    const __m256i not_finite = _mm256_cmpgt_epi32(magnitude, infinity_below);
    const __m256i quiet =
        _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, infinity), _mm256_set1_epi32(0x40));
    half = _mm256_blendv_epi8(half, _mm256_or_si256(_mm256_srli_epi32(magnitude, 16), quiet),
                              not_finite);
    half = _mm256_or_si256(half, sign);
    // packus works within 128-bit lanes; the permutation joins the two results.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(half, half), 0x08);
    return _mm256_castsi256_si128(packed);
  }

  MOTLEY_AVX2 static __m256 widen(__m128i halves) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }

  static const FormatKernels& scalar() { return scalar_half_kernels().bf16; }
};

MOTLEY_AVX2 inline __m128i load_halves(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

MOTLEY_AVX2 inline void store_halves(std::byte* to, __m128i halves) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
}

template <class Half>
MOTLEY_AVX2 void encode(std::span<const float> values_N, std::byte* wire_B) {
  const std::size_t whole = whole_lanes(values_N.size());
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += kLanes) {
    prefetch_ahead(values_N.data() + i, kReadAheadBytes, kRowBytes);
    store_halves(wire_B + 2 * i, Half::narrow(_mm256_loadu_ps(values_N.data() + i)));
  }
  Half::scalar().encode(values_N.subspan(whole), wire_B + 2 * whole);
}

template <class Half>
MOTLEY_AVX2 void decode(const std::byte* wire_B, std::span<float> values_N) {
  const std::size_t whole = whole_lanes(values_N.size());
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += kLanes) {
    _mm256_storeu_ps(values_N.data() + i, Half::widen(load_halves(wire_B + 2 * i)));
  }
  Half::scalar().decode(wire_B + 2 * whole, values_N.subspan(whole));
}

template <class Half>
MOTLEY_AVX2 void decode_add(const std::byte* wire_B, std::span<float> sum_N) {
  const std::size_t whole = whole_lanes(sum_N.size());
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += kLanes) {
    float* sum = sum_N.data() + i;
    prefetch_ahead(sum, kUpdateAheadBytes, kRowBytes);
    const __m256 row = Half::widen(load_halves(wire_B + 2 * i));
    _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), row));
  }
  Half::scalar().decode_add(wire_B + 2 * whole, sum_N.subspan(whole));
}

template <class Half>
MOTLEY_AVX2 void encode_feedback(std::span<const float> gradient_N,
                                 std::span<float> residual_N,
                                 std::byte* wire_B) {
  const std::size_t whole = whole_lanes(residual_N.size());
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  const __m256 magnitude_mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += kLanes) {
    const float* gradient = gradient_N.data() + i;
    float* residual = residual_N.data() + i;
    prefetch_ahead(gradient, kUpdateAheadBytes, kRowBytes);
    prefetch_ahead(residual, kUpdateAheadBytes, kRowBytes);
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(residual), _mm256_loadu_ps(gradient));
    const __m128i halves = Half::narrow(sum);
    store_halves(wire_B + 2 * i, halves);
    const __m256 rest = _mm256_sub_ps(sum, Half::widen(halves));
    const __m256 finite = _mm256_cmp_ps(_mm256_and_ps(rest, magnitude_mask), infinity, _CMP_LT_OQ);
    _mm256_storeu_ps(residual, _mm256_and_ps(rest, finite));
  }
  Half::scalar().encode_feedback(gradient_N.subspan(whole), residual_N.subspan(whole),
                                 wire_B + 2 * whole);
}

template <class Half>
constexpr FormatKernels kFormat = {encode<Half>, decode<Half>, decode_add<Half>,
                                   encode_feedback<Half>};

// clang 14 does not know __builtin_cpu_supports("f16c").
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const HalfKernels* avx2_half_kernels() {
  static constexpr HalfKernels kKernels = {kFormat<Fp16>, kFormat<Bf16>};
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
