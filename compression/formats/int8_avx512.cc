// A block stays in registers from the gradient to the residual.
#include "compression/formats/block_quantise_avx512.h"

#if defined(__x86_64__)

#include <cstring>

#include "compression/formats/block_loops_avx512.h"

namespace motley {
namespace {

using namespace avx512;

struct Int8 {
  static constexpr std::size_t kBytes = kInt8BlockBytes;

  struct Message {
    float scale;
    Codes codes;
  };

  MOTLEY_AVX512 static Message of(const Rows& rows) {
    const BlockScale block = block_scale(largest_magnitude_bits(rows), kInt8Largest, kInt8ScaleMax);
    return {block.scale, codes_of(rows, block.inverse)};
  }

  MOTLEY_AVX512 static void write(const Message& message, std::byte* wire_B) {
    std::memcpy(wire_B, &message.scale, kBlockScaleBytes);
    _mm512_storeu_si512(wire_B + kBlockScaleBytes, message.codes.at[0]);
    _mm512_storeu_si512(wire_B + kBlockScaleBytes + 64, message.codes.at[1]);
  }

  MOTLEY_AVX512 static Message read(const std::byte* wire_B) {
    Message message;
    std::memcpy(&message.scale, wire_B, kBlockScaleBytes);
    message.codes = {_mm512_loadu_si512(wire_B + kBlockScaleBytes),
                     _mm512_loadu_si512(wire_B + kBlockScaleBytes + 64)};
    return message;
  }

  MOTLEY_AVX512 static Rows values(const Message& message) {
    const __m512 factor = _mm512_set1_ps(message.scale);
    Rows rows;
#pragma GCC unroll 2
    for (std::size_t q = 0; q < 2; ++q) {
      const __m512i codes = message.codes.at[q];
      const __m128i part[] = {_mm512_castsi512_si128(codes), _mm512_extracti32x4_epi32(codes, 1),
                              _mm512_extracti32x4_epi32(codes, 2),
                              _mm512_extracti32x4_epi32(codes, 3)};
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        const __m512 row = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(part[i]));
        rows.at[4 * q + i] = _mm512_mul_ps(row, factor);
      }
    }
    return rows;
  }

  static const FormatKernels& scalar() {
    return scalar_block_kernels().int8;
  }
};

}  // namespace

const FormatKernels* avx512_int8_kernels() {
  return supported() ? &kFormat<Int8> : nullptr;
}

}  // namespace motley

#else

namespace motley {

const FormatKernels* avx512_int8_kernels() {
  return nullptr;
}

}  // namespace motley

#endif
