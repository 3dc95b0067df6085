// Common parts of the block formats with AVX-512: a block in registers, and loops over whole
// blocks; the scalar reference processes the partial block at the end. For kernel sources only.
//
// Functions have their own target attribute, so that their files compile without -mavx512f and the
// implementation is selected at run time.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "compression/formats/block_quantise.h"
#include "compression/kernels/prefetch.h"

#define MOTLEY_AVX512_KERNEL __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define MOTLEY_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), always_inline))

namespace motley::avx512 {

[[nodiscard]] inline bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kRows = kBlockValues / kLanes;
inline constexpr std::uintptr_t kRowsBytes = kBlockValues * sizeof(float);

// One block: row r has the values 16 r to 16 r + 15.
struct Rows {
  __m512 at[kRows];
};

// The codes of a block: of the values 64 q to 64 q + 63, in bytes.
struct Codes {
  __m512i at[2];
};

MOTLEY_AVX512 inline Rows load_rows(const float* from) {
  Rows rows;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) rows.at[r] = _mm512_loadu_ps(from + kLanes * r);
  return rows;
}

MOTLEY_AVX512 inline void store_rows(const Rows& rows, float* to) {
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) _mm512_storeu_ps(to + kLanes * r, rows.at[r]);
}

MOTLEY_AVX512 inline Rows sum_of(const Rows& a, const Rows& b) {
  Rows sum;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) sum.at[r] = _mm512_add_ps(a.at[r], b.at[r]);
  return sum;
}

// As integers, magnitudes are ordered: finite ones by size, then infinity, then NaN.
MOTLEY_AVX512 inline std::uint32_t largest_magnitude_bits(const Rows& rows) {
  __m512i largest = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (const __m512 row : rows.at) {
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(row), _mm512_set1_epi32(0x7FFFFFFF));
    largest = _mm512_max_epi32(largest, magnitude);
  }
  return static_cast<std::uint32_t>(_mm512_reduce_max_epi32(largest));
}

// Codes are rounded to nearest, ties to even, as is MXCSR's default. They are all zero if the block
// has no inverse.
MOTLEY_AVX512 inline Codes codes_of(const Rows& rows, float inverse) {
  if (inverse == 0) return Codes{_mm512_setzero_si512(), _mm512_setzero_si512()};
  const __m512 factor = _mm512_set1_ps(inverse);
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  Codes codes;
#pragma GCC unroll 2
  for (std::size_t q = 0; q < 2; ++q) {
    __m512i code[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      code[i] = _mm512_cvtps_epi32(_mm512_mul_ps(rows.at[4 * q + i], factor));
    }
    // Packing works within 128-bit lanes; the permutation restores the order.
    const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(code[0], code[1]),
                                              _mm512_packs_epi32(code[2], code[3]));
    codes.at[q] = _mm512_permutexvar_epi32(in_order, packed);
  }
  return codes;
}

// Format provides Message, a block as codes; kBytes, the wire size of a block; of(rows), write(),
// read() and values() to convert between them; scalar(), the reference.
template <class Format>
MOTLEY_AVX512_KERNEL void encode(std::span<const float> values_N, std::byte* wire_B) {
  const std::size_t whole = values_N.size() - values_N.size() % kBlockValues;
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    prefetch_ahead(values_N.data() + i, kReadAheadBytes, kRowsBytes);
    Format::write(Format::of(load_rows(values_N.data() + i)), wire_B);
  }
  Format::scalar().encode(values_N.subspan(whole), wire_B);
}

template <class Format>
MOTLEY_AVX512_KERNEL void decode(const std::byte* wire_B, std::span<float> values_N) {
  const std::size_t whole = values_N.size() - values_N.size() % kBlockValues;
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    prefetch_ahead(wire_B, kReadAheadBytes, Format::kBytes);
    store_rows(Format::values(Format::read(wire_B)), values_N.data() + i);
  }
  Format::scalar().decode(wire_B, values_N.subspan(whole));
}

template <class Format>
MOTLEY_AVX512_KERNEL void decode_add(const std::byte* wire_B, std::span<float> sum_N) {
  const std::size_t whole = sum_N.size() - sum_N.size() % kBlockValues;
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    float* sum = sum_N.data() + i;
    prefetch_ahead(wire_B, kUpdateAheadBytes, Format::kBytes);
    prefetch_ahead(sum, kUpdateAheadBytes, kRowsBytes);
    store_rows(sum_of(load_rows(sum), Format::values(Format::read(wire_B))), sum);
  }
  Format::scalar().decode_add(wire_B, sum_N.subspan(whole));
}

template <class Format>
MOTLEY_AVX512_KERNEL void encode_feedback(std::span<const float> gradient_N,
                                          std::span<float> residual_N,
                                          std::byte* wire_B) {
  constexpr int kNotFinite = 0x99;  // NaNs and infinities
  const std::size_t whole = residual_N.size() - residual_N.size() % kBlockValues;
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    const float* gradient = gradient_N.data() + i;
    float* residual = residual_N.data() + i;
    prefetch_ahead(gradient, kUpdateAheadBytes, kRowsBytes);
    prefetch_ahead(residual, kUpdateAheadBytes, kRowsBytes);
    const Rows sum = sum_of(load_rows(residual), load_rows(gradient));
    const auto message = Format::of(sum);
    Format::write(message, wire_B);
    Rows rest = Format::values(message);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      const __m512 row = _mm512_sub_ps(sum.at[r], rest.at[r]);
      const __mmask16 not_finite = _mm512_fpclass_ps_mask(row, kNotFinite);
      rest.at[r] = _mm512_mask_mov_ps(row, not_finite, _mm512_setzero_ps());
    }
    store_rows(rest, residual);
  }
  Format::scalar().encode_feedback(gradient_N.subspan(whole), residual_N.subspan(whole), wire_B);
}

template <class Format>
inline constexpr FormatKernels kFormat = {encode<Format>, decode<Format>, decode_add<Format>,
                                          encode_feedback<Format>};

}  // namespace motley::avx512

#endif
