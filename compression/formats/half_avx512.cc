// Sixteen values at a time, the rest with a mask. Functions have their own target attribute, so the
// file compiles without -mavx512f and the implementation is selected at run time.
#include "compression/formats/half_avx512.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "compression/kernels/prefetch.h"

#define MOTLEY_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace motley {
namespace {

constexpr std::size_t kLanes = 16;
constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// The valid lanes of a row: all, or those of a mask.
struct AllLanes {};

MOTLEY_AVX512 inline __m512 load_row(const float* from, AllLanes) {
  return _mm512_loadu_ps(from);
}

MOTLEY_AVX512 inline __m512 load_row(const float* from, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}

MOTLEY_AVX512 inline void store_row(float* to, AllLanes, __m512 row) {
  _mm512_storeu_ps(to, row);
}

MOTLEY_AVX512 inline void store_row(float* to, __mmask16 lanes, __m512 row) {
  _mm512_mask_storeu_ps(to, lanes, row);
}

MOTLEY_AVX512 inline __m256i load_halves(const std::byte* from, AllLanes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

MOTLEY_AVX512 inline __m256i load_halves(const std::byte* from, __mmask16 lanes) {
  return _mm256_maskz_loadu_epi16(lanes, from);
}

MOTLEY_AVX512 inline void store_halves(std::byte* to, AllLanes, __m256i halves) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
}

MOTLEY_AVX512 inline void store_halves(std::byte* to, __mmask16 lanes, __m256i halves) {
  _mm256_mask_storeu_epi16(to, lanes, halves);
}

// Calls row(i, lanes) for each row of `count` values.
template <class Row>
MOTLEY_AVX512 inline void for_rows(std::size_t count, const Row& row) {
  std::size_t i = 0;
#pragma GCC unroll 4
  for (; i + kLanes <= count; i += kLanes) row(i, AllLanes{});
  if (i < count) row(i, static_cast<__mmask16>((1U << (count - i)) - 1));
}

// Tests of sign, magnitude and finiteness are done on the bits as integers, which are ordered by
// size.
struct Fp16 {
  MOTLEY_AVX512 static __m256i narrow(__m512 row) {
    const __m512i magnitude_mask = _mm512_set1_epi32(0x7FFFFFFF);
    const __m512i bits = _mm512_castps_si512(row);
    const __m512i magnitude = _mm512_and_si512(bits, magnitude_mask);
    const __mmask16 finite = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
    const __m512i largest = _mm512_castps_si512(_mm512_set1_ps(65504.0F));
    const __m512i kept = _mm512_mask_min_epi32(magnitude, finite, magnitude, largest);
    // 0xCA: selects the second operand where the mask is set, else the third.
    const __m512i with_sign = _mm512_ternarylogic_epi32(magnitude_mask, kept, bits, 0xCA);
    return _mm512_cvtps_ph(_mm512_castsi512_ps(with_sign), kNearestEven);
  }

  MOTLEY_AVX512 static __m512 widen(__m256i halves) { return _mm512_cvtph_ps(halves); }
};

struct Bf16 {
  MOTLEY_AVX512 static __m256i narrow(__m512 row) {
    const __m512i infinity = _mm512_set1_epi32(0x7F800000);
    const __m512i bits = _mm512_castps_si512(row);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
    const __m512i sign = _mm512_srli_epi32(_mm512_xor_si512(bits, magnitude), 16);
    const __m512i truncated = _mm512_srli_epi32(magnitude, 16);
    const __m512i odd = _mm512_and_si512(truncated, _mm512_set1_epi32(1));
    const __m512i sum =
        _mm512_add_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32(0x7FFF)), odd);
    __m512i half = _mm512_min_epi32(_mm512_srli_epi32(sum, 16), _mm512_set1_epi32(0x7F7F));
    // Not finite: truncated, and NaNs made quiet.
    half = _mm512_mask_mov_epi32(half, _mm512_cmpge_epi32_mask(magnitude, infinity), truncated);
    half = _mm512_mask_or_epi32(half, _mm512_cmpgt_epi32_mask(magnitude, infinity), half,
                                _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(_mm512_or_si512(half, sign));
  }

  MOTLEY_AVX512 static __m512 widen(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
};

template <class Half>
MOTLEY_AVX512 inline void encode(std::span<const float> values_N, std::byte* wire_B) {
  const float* values = values_N.data();
  for_rows(values_N.size(), [=](std::size_t i, auto lanes) MOTLEY_AVX512 {
    prefetch_ahead(values + i, kReadAheadBytes, kCacheLineBytes);
    store_halves(wire_B + 2 * i, lanes, Half::narrow(load_row(values + i, lanes)));
  });
}

template <class Half>
MOTLEY_AVX512 inline void decode(const std::byte* wire_B, std::span<float> values_N) {
  float* values = values_N.data();
  for_rows(values_N.size(), [=](std::size_t i, auto lanes) MOTLEY_AVX512 {
    prefetch_ahead(wire_B + 2 * i, kReadAheadBytes, 1);
    store_row(values + i, lanes, Half::widen(load_halves(wire_B + 2 * i, lanes)));
  });
}

template <class Half>
MOTLEY_AVX512 inline void decode_add(const std::byte* wire_B, std::span<float> sum_N) {
  float* sum = sum_N.data();
  for_rows(sum_N.size(), [=](std::size_t i, auto lanes) MOTLEY_AVX512 {
    prefetch_ahead(wire_B + 2 * i, kUpdateAheadBytes, 1);
    prefetch_ahead(sum + i, kUpdateAheadBytes, kCacheLineBytes);
    const __m512 row = Half::widen(load_halves(wire_B + 2 * i, lanes));
    store_row(sum + i, lanes, _mm512_add_ps(load_row(sum + i, lanes), row));
  });
}

template <class Half>
MOTLEY_AVX512 inline void encode_feedback(std::span<const float> gradient_N,
                                          std::span<float> residual_N,
                                          std::byte* wire_B) {
  constexpr int kNotFinite = 0x99;  // NaNs and infinities
  const float* gradient = gradient_N.data();
  float* residual = residual_N.data();
  for_rows(residual_N.size(), [=](std::size_t i, auto lanes) MOTLEY_AVX512 {
    prefetch_ahead(gradient + i, kUpdateAheadBytes, kCacheLineBytes);
    prefetch_ahead(residual + i, kUpdateAheadBytes, kCacheLineBytes);
    const __m512 sum = _mm512_add_ps(load_row(residual + i, lanes), load_row(gradient + i, lanes));
    const __m256i halves = Half::narrow(sum);
    store_halves(wire_B + 2 * i, lanes, halves);
    const __m512 rest = _mm512_sub_ps(sum, Half::widen(halves));
    const __mmask16 not_finite = _mm512_fpclass_ps_mask(rest, kNotFinite);
    store_row(residual + i, lanes, _mm512_mask_mov_ps(rest, not_finite, _mm512_setzero_ps()));
  });
}

template <class Half>
constexpr FormatKernels kFormat = {encode<Half>, decode<Half>, decode_add<Half>,
                                   encode_feedback<Half>};

}  // namespace

const HalfKernels* avx512_half_kernels() {
  static constexpr HalfKernels kKernels = {kFormat<Fp16>, kFormat<Bf16>};
  const bool present = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return present ? &kKernels : nullptr;
}

}  // namespace motley

#else

namespace motley {

const HalfKernels* avx512_half_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
