// A block stays in registers from the gradient to the residual.
#include "compression/formats/block_quantise_avx512.h"

#if defined(__x86_64__)

#include <cstring>

#include "compression/formats/block_loops_avx512.h"
#include "compression/formats/hadamard.h"

namespace motley {
namespace {

using namespace avx512;

// Each pair (a, b) becomes (b + a, a - b); `seconds` marks the positions of b.
MOTLEY_AVX512 inline __m512 cross(__m512 own, __m512 swapped, __mmask16 seconds) {
  return _mm512_mask_sub_ps(_mm512_add_ps(swapped, own), seconds, swapped, own);
}

MOTLEY_AVX512 inline __m512i cross(__m512i own, __m512i swapped, __mmask64 seconds) {
  return _mm512_mask_sub_epi8(_mm512_add_epi8(swapped, own), seconds, swapped, own);
}

// Strides 1, 2, 4 and 8, within a row.
MOTLEY_AVX512 inline __m512 rotate_row(__m512 row) {
  row = cross(row, _mm512_permute_ps(row, 0xB1), 0xAAAA);
  row = cross(row, _mm512_permute_ps(row, 0x4E), 0xCCCC);
  row = cross(row, _mm512_shuffle_f32x4(row, row, 0xB1), 0xF0F0);
  return cross(row, _mm512_shuffle_f32x4(row, row, 0x4E), 0xFF00);
}

// In the order of strides that the format prescribes.
MOTLEY_AVX512 inline Rows rotated_rows(const Rows& values) {
  Rows rows;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) {
    const __m512 signs = _mm512_load_ps(kEncodeSigns.data() + kLanes * r);
    rows.at[r] = rotate_row(_mm512_mul_ps(values.at[r], signs));
  }
#pragma GCC unroll 3
  for (std::size_t step = 1; step < kRows; step *= 2) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      if ((r & step) != 0) continue;
      const __m512 sum = _mm512_add_ps(rows.at[r], rows.at[r + step]);
      rows.at[r + step] = _mm512_sub_ps(rows.at[r], rows.at[r + step]);
      rows.at[r] = sum;
    }
  }
  return rows;
}

// The same strides. A sum of sixteen codes of -8 to 7 fits a byte: with plus signs only it is at
// least -128, and a sum with minus signs has as many as plus signs.
MOTLEY_AVX512 inline __m512i rotate_sixteens(__m512i codes) {
  const __m512i swap_1 =
      _mm512_broadcast_i32x4(_mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  const __m512i swap_2 =
      _mm512_broadcast_i32x4(_mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  codes = cross(codes, _mm512_shuffle_epi8(codes, swap_1), 0xAAAAAAAAAAAAAAAA);
  codes = cross(codes, _mm512_shuffle_epi8(codes, swap_2), 0xCCCCCCCCCCCCCCCC);
  codes = cross(codes, _mm512_shuffle_epi32(codes, _MM_PERM_CDAB), 0xF0F0F0F0F0F0F0F0);
  return cross(codes, _mm512_shuffle_epi32(codes, _MM_PERM_BADC), 0xFF00FF00FF00FF00);
}

struct Int4 {
  static constexpr std::size_t kBytes = kInt4BlockBytes;

  struct Message {
    float scale;
    __m512i codes;  // byte j: the codes at positions j and j + 64
  };

  MOTLEY_AVX512 static Message of(const Rows& values) {
    const Rows rows = rotated_rows(values);
    const BlockScale block = block_scale(largest_magnitude_bits(rows), kInt4Largest, kInt4ScaleMax);
    Codes codes = codes_of(rows, block.inverse);
    for (__m512i& code : codes.at) {
      code = _mm512_max_epi8(_mm512_min_epi8(code, _mm512_set1_epi8(7)), _mm512_set1_epi8(-7));
      code = _mm512_and_si512(code, _mm512_set1_epi8(0x0F));
    }
    return {block.scale, _mm512_or_si512(codes.at[0], _mm512_slli_epi16(codes.at[1], 4))};
  }

  MOTLEY_AVX512 static void write(const Message& message, std::byte* wire_B) {
    std::memcpy(wire_B, &message.scale, kBlockScaleBytes);
    _mm512_storeu_si512(wire_B + kBlockScaleBytes, message.codes);
  }

  MOTLEY_AVX512 static Message read(const std::byte* wire_B) {
    Message message;
    std::memcpy(&message.scale, wire_B, kBlockScaleBytes);
    message.codes = _mm512_loadu_si512(wire_B + kBlockScaleBytes);
    return message;
  }

  // The same transform as for floats, in integers and therefore in any order.
  MOTLEY_AVX512 static Rows values(const Message& message) {
    const __m512i low = _mm512_set1_epi8(0x0F);
    const __m512i sign = _mm512_set1_epi8(8);
    __m512i sums[4];  // of the values 32 i to 32 i + 31, in 16 bits
#pragma GCC unroll 2
    for (std::size_t q = 0; q < 2; ++q) {
      const __m512i bytes = q == 0 ? message.codes : _mm512_srli_epi16(message.codes, 4);
      const __m512i nibbles = _mm512_and_si512(bytes, low);
      const __m512i rotated =
          rotate_sixteens(_mm512_sub_epi8(_mm512_xor_si512(nibbles, sign), sign));
      sums[2 * q] = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(rotated));
      sums[2 * q + 1] = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(rotated, 1));
    }
#pragma GCC unroll 4
    for (__m512i& sum : sums) {  // stride 16
      const __m512i swapped = _mm512_shuffle_i64x2(sum, sum, 0x4E);
      sum = _mm512_mask_sub_epi16(_mm512_add_epi16(swapped, sum), 0xFFFF0000, swapped, sum);
    }
#pragma GCC unroll 2
    for (std::size_t step = 1; step < 4; step *= 2) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        if ((i & step) != 0) continue;
        const __m512i sum = _mm512_add_epi16(sums[i], sums[i + step]);
        sums[i + step] = _mm512_sub_epi16(sums[i], sums[i + step]);
        sums[i] = sum;
      }
    }
    const __m512 factor = _mm512_set1_ps(message.scale);
    Rows rows;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      const __m512i signed_sums =
          _mm512_mullo_epi16(sums[i], _mm512_load_si512(kDecodeSigns.data() + 32 * i));
      const auto row = [&](__m256i half) MOTLEY_AVX512 {
        return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(half)), factor);
      };
      rows.at[2 * i] = row(_mm512_castsi512_si256(signed_sums));
      rows.at[2 * i + 1] = row(_mm512_extracti64x4_epi64(signed_sums, 1));
    }
    return rows;
  }

  static const FormatKernels& scalar() {
    return scalar_block_kernels().int4;
  }
};

}  // namespace

const FormatKernels* avx512_int4_kernels() {
  return supported() ? &kFormat<Int4> : nullptr;
}

}  // namespace motley

#else

namespace motley {

const FormatKernels* avx512_int4_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
