// Processes whole blocks; the scalar reference processes the partial block at the end. Functions
// have their own target attribute, so the file compiles without -mavx2 and the implementation is
// selected at run time.
#include "compression/formats/block_quantise_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "compression/formats/hadamard.h"
#include "compression/kernels/prefetch.h"

#define MOTLEY_AVX2 __attribute__((target("avx2")))

namespace motley {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kRows = kBlockValues / kLanes;
constexpr std::size_t kCodeParts = kBlockValues / 32;

// One block: row r has the values 8 r to 8 r + 7.
struct Rows {
  __m256 at[kRows];
};

// The codes of a block: of the values 32 q to 32 q + 31, in bytes.
struct Codes {
  __m256i at[kCodeParts];
};

std::size_t whole_blocks(std::size_t count) {
  return count - count % kBlockValues;
}

MOTLEY_AVX2 inline void store_256(std::byte* to, __m256i bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
}

MOTLEY_AVX2 inline __m256i load_256(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// As integers, magnitudes are ordered: finite ones by size, then infinity, then NaN.
MOTLEY_AVX2 inline std::uint32_t largest_magnitude_bits(const Rows& rows) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i largest = _mm256_setzero_si256();
  for (const __m256 row : rows.at) {
    largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(row), mask));
  }
  __m128i half =
      _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}

// Rounds to nearest, ties to even, as is MXCSR's default. All zero if the block has no inverse.
MOTLEY_AVX2 inline Codes codes_of(const Rows& rows, float inverse) {
  if (inverse == 0) return Codes{};  // zero times NaN would be no valid code
  const __m256 factor = _mm256_set1_ps(inverse);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  Codes codes;
  for (std::size_t q = 0; q < kCodeParts; ++q) {
    const auto code = [&](std::size_t i) MOTLEY_AVX2 {
      return _mm256_cvtps_epi32(_mm256_mul_ps(rows.at[4 * q + i], factor));
    };
    // Packing works within 128-bit lanes; the permutation restores the order.
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(code(0), code(1)),
                                              _mm256_packs_epi32(code(2), code(3)));
    codes.at[q] = _mm256_permutevar8x32_epi32(packed, in_order);
  }
  return codes;
}

MOTLEY_AVX2 inline Rows loaded_rows(const float* from) {
  Rows rows;
  for (std::size_t r = 0; r < kRows; ++r) rows.at[r] = _mm256_loadu_ps(from + kLanes * r);
  return rows;
}

struct Int8 {
  static constexpr std::size_t kBytes = kInt8BlockBytes;

  MOTLEY_AVX2 static void write(const float* values_N, std::byte* wire_B) {
    const Rows rows = loaded_rows(values_N);
    const BlockScale block = block_scale(largest_magnitude_bits(rows), kInt8Largest, kInt8ScaleMax);
    const Codes codes = codes_of(rows, block.inverse);
    std::memcpy(wire_B, &block.scale, kBlockScaleBytes);
    for (std::size_t q = 0; q < kCodeParts; ++q) {
      store_256(wire_B + kBlockScaleBytes + 32 * q, codes.at[q]);
    }
  }

  // Calls use(place, row) for each row.
  template <class Use>
  MOTLEY_AVX2 static void read(const std::byte* wire_B, const Use& use) {
    float scale = 0;
    std::memcpy(&scale, wire_B, kBlockScaleBytes);
    const __m256 factor = _mm256_set1_ps(scale);
    for (std::size_t i = 0; i < kBlockValues; i += kLanes) {
      const __m128i bytes =
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(wire_B + kBlockScaleBytes + i));
      use(i, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), factor));
    }
  }

  static const FormatKernels& scalar() { return scalar_block_kernels().int8; }
};

// Strides 1, 2 and 4, within a row: each pair (a, b) becomes (b + a, a - b).
MOTLEY_AVX2 inline __m256 rotate_row(__m256 row) {
  const __m256 minus = _mm256_set1_ps(-0.0F);
  const __m256 zero = _mm256_setzero_ps();
  const __m256 minus_1 = _mm256_blend_ps(zero, minus, 0xAA);
  const __m256 minus_2 = _mm256_blend_ps(zero, minus, 0xCC);
  const __m256 minus_4 = _mm256_blend_ps(zero, minus, 0xF0);
  row = _mm256_add_ps(_mm256_permute_ps(row, 0xB1), _mm256_xor_ps(row, minus_1));
  row = _mm256_add_ps(_mm256_permute_ps(row, 0x4E), _mm256_xor_ps(row, minus_2));
  return _mm256_add_ps(_mm256_permute2f128_ps(row, row, 1), _mm256_xor_ps(row, minus_4));
}

MOTLEY_AVX2 inline void cross_rows(__m256& a, __m256& b) {
  const __m256 sum = _mm256_add_ps(a, b);
  b = _mm256_sub_ps(a, b);
  a = sum;
}

// In the order of strides that the format prescribes. Stride 8 is combined with those within rows,
// and the rest is done over every second row, so that the working set fits the sixteen registers.
MOTLEY_AVX2 inline Rows rotated_rows(const float* values_N) {
  Rows rows;
  const auto loaded = [&](std::size_t r) MOTLEY_AVX2 {
    const __m256 row = _mm256_loadu_ps(values_N + kLanes * r);
    return rotate_row(_mm256_mul_ps(row, _mm256_load_ps(kEncodeSigns.data() + kLanes * r)));
  };
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; r += 2) {
    rows.at[r] = loaded(r);
    rows.at[r + 1] = loaded(r + 1);
    cross_rows(rows.at[r], rows.at[r + 1]);
  }
#pragma GCC unroll 2
  for (std::size_t parity = 0; parity < 2; ++parity) {
#pragma GCC unroll 3
    for (std::size_t step = 2; step < kRows; step *= 2) {
#pragma GCC unroll 8
      for (std::size_t r = parity; r < kRows; r += 2) {
        if ((r & step) == 0) cross_rows(rows.at[r], rows.at[r + step]);
      }
    }
  }
  return rows;
}

// A pair (a, b) becomes (b + a, a - b); `signs` is -1 at the position of b.
MOTLEY_AVX2 inline __m256i add_swapped(__m256i codes, __m256i swapped, __m256i signs) {
  return _mm256_add_epi8(swapped, _mm256_sign_epi8(codes, signs));
}

// Strides 1, 2, 4 and 8. A sum of sixteen codes of -8 to 7 fits a byte: with plus signs only it is
// at least -128, and a sum with minus signs has as many as plus signs.
MOTLEY_AVX2 inline __m256i rotate_sixteens(__m256i codes) {
  const __m256i swap_1 = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  const __m256i swap_2 = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  const __m256i signs_1 = _mm256_set1_epi16(static_cast<short>(0xFF01));
  const __m256i signs_2 = _mm256_set1_epi32(static_cast<int>(0xFFFF0101));
  const __m256i signs_4 = _mm256_set1_epi64x(static_cast<long long>(0xFFFFFFFF01010101));
  const __m256i signs_8 = _mm256_setr_epi64x(0x0101010101010101, -1, 0x0101010101010101, -1);
  codes = add_swapped(codes, _mm256_shuffle_epi8(codes, swap_1), signs_1);
  codes = add_swapped(codes, _mm256_shuffle_epi8(codes, swap_2), signs_2);
  codes = add_swapped(codes, _mm256_shuffle_epi32(codes, 0xB1), signs_4);
  return add_swapped(codes, _mm256_shuffle_epi32(codes, 0x4E), signs_8);
}

// Rotated codes: of the values 16 i to 16 i + 15, in 16 bits.
struct Sums {
  __m256i at[kBlockValues / 16];
};

// The same transform as for floats, in integers and therefore in any order.
MOTLEY_AVX2 inline Sums rotated_codes(const std::byte* wire_B) {
  const __m256i low = _mm256_set1_epi8(0x0F);
  const __m256i sign = _mm256_set1_epi8(8);
  Sums sums;
  for (std::size_t q = 0; q < 4; ++q) {
    const __m256i bytes = load_256(wire_B + 32 * (q % 2));
    const __m256i nibbles = _mm256_and_si256(q < 2 ? bytes : _mm256_srli_epi16(bytes, 4), low);
    const __m256i codes = _mm256_sub_epi8(_mm256_xor_si256(nibbles, sign), sign);
    const __m256i rotated = rotate_sixteens(codes);
    sums.at[2 * q] = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(rotated));
    sums.at[2 * q + 1] = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(rotated, 1));
  }
  for (std::size_t step = 1; step < 8; step *= 2) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((i & step) != 0) continue;
      const __m256i sum = _mm256_add_epi16(sums.at[i], sums.at[i + step]);
      sums.at[i + step] = _mm256_sub_epi16(sums.at[i], sums.at[i + step]);
      sums.at[i] = sum;
    }
  }
  for (std::size_t i = 0; i < kBlockValues / 16; ++i) {
    const void* signs = kDecodeSigns.data() + 16 * i;
    sums.at[i] =
        _mm256_sign_epi16(sums.at[i], _mm256_load_si256(static_cast<const __m256i*>(signs)));
  }
  return sums;
}

struct Int4 {
  static constexpr std::size_t kBytes = kInt4BlockBytes;

  MOTLEY_AVX2 static void write(const float* values_N, std::byte* wire_B) {
    const __m256i largest = _mm256_set1_epi8(7);
    const __m256i least = _mm256_set1_epi8(-7);
    const __m256i low = _mm256_set1_epi8(0x0F);
    const Rows rows = rotated_rows(values_N);
    const BlockScale block = block_scale(largest_magnitude_bits(rows), kInt4Largest, kInt4ScaleMax);
    Codes codes = codes_of(rows, block.inverse);
    for (__m256i& code : codes.at) {
      code = _mm256_max_epi8(_mm256_min_epi8(code, largest), least);
      code = _mm256_and_si256(code, low);
    }
    std::memcpy(wire_B, &block.scale, kBlockScaleBytes);
    wire_B += kBlockScaleBytes;
    store_256(wire_B, _mm256_or_si256(codes.at[0], _mm256_slli_epi16(codes.at[2], 4)));
    store_256(wire_B + 32, _mm256_or_si256(codes.at[1], _mm256_slli_epi16(codes.at[3], 4)));
  }

  // Calls use(place, row) for each row.
  template <class Use>
  MOTLEY_AVX2 static void read(const std::byte* wire_B, const Use& use) {
    float scale = 0;
    std::memcpy(&scale, wire_B, kBlockScaleBytes);
    const __m256 factor = _mm256_set1_ps(scale);
    const Sums sums = rotated_codes(wire_B + kBlockScaleBytes);
    const auto row = [&](__m128i codes) MOTLEY_AVX2 {
      return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(codes)), factor);
    };
    for (std::size_t i = 0; i < kBlockValues / 16; ++i) {
      const __m256i codes = sums.at[i];
      use(16 * i, row(_mm256_castsi256_si128(codes)));
      use(16 * i + kLanes, row(_mm256_extracti128_si256(codes, 1)));
    }
  }

  static const FormatKernels& scalar() { return scalar_block_kernels().int4; }
};

template <class Format>
MOTLEY_AVX2 void encode(std::span<const float> values_N, std::byte* wire_B) {
  const std::size_t whole = whole_blocks(values_N.size());
  for (std::size_t first = 0; first < whole; first += kBlockValues, wire_B += Format::kBytes) {
    Format::write(values_N.data() + first, wire_B);
  }
  Format::scalar().encode(values_N.subspan(whole), wire_B);
}

template <class Format>
MOTLEY_AVX2 void decode(const std::byte* wire_B, std::span<float> values_N) {
  const std::size_t whole = whole_blocks(values_N.size());
  for (std::size_t first = 0; first < whole; first += kBlockValues, wire_B += Format::kBytes) {
    float* values = values_N.data() + first;
    Format::read(wire_B, [=](std::size_t place, __m256 row)
                             MOTLEY_AVX2 { _mm256_storeu_ps(values + place, row); });
  }
  Format::scalar().decode(wire_B, values_N.subspan(whole));
}

template <class Format>
MOTLEY_AVX2 void decode_add(const std::byte* wire_B, std::span<float> sum_N) {
  const std::size_t whole = whole_blocks(sum_N.size());
  for (std::size_t first = 0; first < whole; first += kBlockValues, wire_B += Format::kBytes) {
    float* sum = sum_N.data() + first;
    prefetch_ahead(sum, kUpdateAheadBytes, kBlockValues * sizeof(float));
    Format::read(wire_B, [=](std::size_t place, __m256 row) MOTLEY_AVX2 {
      _mm256_storeu_ps(sum + place, _mm256_add_ps(_mm256_loadu_ps(sum + place), row));
    });
  }
  Format::scalar().decode_add(wire_B, sum_N.subspan(whole));
}

// A block is added, written and read back in the L1 cache: it does not fit the registers.
template <class Format>
MOTLEY_AVX2 void encode_feedback(std::span<const float> gradient_N,
                                 std::span<float> residual_N,
                                 std::byte* wire_B) {
  const __m256i infinity = _mm256_set1_epi32(0x7F800000);
  const std::size_t whole = whole_blocks(residual_N.size());
  for (std::size_t first = 0; first < whole; first += kBlockValues, wire_B += Format::kBytes) {
    const float* gradient = gradient_N.data() + first;
    float* residual = residual_N.data() + first;
    prefetch_ahead(gradient, kUpdateAheadBytes, kBlockValues * sizeof(float));
    prefetch_ahead(residual, kUpdateAheadBytes, kBlockValues * sizeof(float));
    for (std::size_t i = 0; i < kBlockValues; i += kLanes) {
      const __m256 sum =
          _mm256_add_ps(_mm256_loadu_ps(residual + i), _mm256_loadu_ps(gradient + i));
      _mm256_storeu_ps(residual + i, sum);
    }
    Format::write(residual, wire_B);
    Format::read(wire_B, [=](std::size_t place, __m256 row) MOTLEY_AVX2 {
      const __m256 rest = _mm256_sub_ps(_mm256_loadu_ps(residual + place), row);
      const __m256i exponent = _mm256_and_si256(_mm256_castps_si256(rest), infinity);
      const __m256 not_finite = _mm256_castsi256_ps(_mm256_cmpeq_epi32(exponent, infinity));
      _mm256_storeu_ps(residual + place, _mm256_andnot_ps(not_finite, rest));
    });
  }
  Format::scalar().encode_feedback(gradient_N.subspan(whole), residual_N.subspan(whole), wire_B);
}

template <class Format>
constexpr FormatKernels kFormat = {encode<Format>, decode<Format>, decode_add<Format>,
                                   encode_feedback<Format>};

}  // namespace

const BlockKernels* avx2_block_kernels() {
  static constexpr BlockKernels kKernels = {kFormat<Int8>, kFormat<Int4>};
  return __builtin_cpu_supports("avx2") ? &kKernels : nullptr;
}

}  // namespace motley

#else

namespace motley {

const BlockKernels* avx2_block_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
