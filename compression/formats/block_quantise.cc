#include "compression/formats/block_quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "compression/formats/hadamard.h"
#include "compression/kernels/piecewise.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

using Block = std::array<float, kBlockValues>;

std::uint32_t largest_magnitude_bits(std::span<const float> values_N) {
  std::uint32_t largest = 0;  // bits, ordered: finite magnitudes, infinity, NaN
  for (const float value : values_N) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
  }
  return largest;
}

int code_of(float value, float inverse, float largest_code) {
  const auto limit = static_cast<long>(largest_code);
  return static_cast<int>(std::clamp(std::lrint(value * inverse), -limit, limit));
}

std::byte* write_scale(float scale, std::byte* wire_B) {
  std::memcpy(wire_B, &scale, kBlockScaleBytes);
  return wire_B + kBlockScaleBytes;
}

float read_scale(const std::byte* wire_B) {
  float scale = 0;
  std::memcpy(&scale, wire_B, kBlockScaleBytes);
  return scale;
}

void int8_encode(std::span<const float> values_N, std::byte* wire_B) {
  while (!values_N.empty()) {
    const auto block_N = values_N.first(std::min(values_N.size(), kBlockValues));
    const BlockScale block =
        block_scale(largest_magnitude_bits(block_N), kInt8Largest, kInt8ScaleMax);
    wire_B = write_scale(block.scale, wire_B);
    for (const float value : block_N) {
      const int code = block.inverse == 0 ? 0 : code_of(value, block.inverse, kInt8Largest);
      *wire_B++ = static_cast<std::byte>(code);
    }
    values_N = values_N.subspan(block_N.size());
  }
}

void int8_decode(const std::byte* wire_B, std::span<float> values_N) {
  while (!values_N.empty()) {
    const auto block_N = values_N.first(std::min(values_N.size(), kBlockValues));
    const float scale = read_scale(wire_B);
    wire_B += kBlockScaleBytes;
    for (float& value : block_N) {
      value = static_cast<float>(static_cast<std::int8_t>(*wire_B++)) * scale;
    }
    values_N = values_N.subspan(block_N.size());
  }
}

void int4_encode_block(Block values_N, std::byte* wire_B) {
  for (std::size_t i = 0; i < kBlockValues; ++i) values_N[i] *= kEncodeSigns[i];
  hadamard_transform(values_N);
  // One value that is not finite makes the whole rotated block not finite.
  const BlockScale block =
      block_scale(largest_magnitude_bits(values_N), kInt4Largest, kInt4ScaleMax);
  wire_B = write_scale(block.scale, wire_B);
  const auto nibble = [&](std::size_t i) {
    return block.inverse == 0 ? 0 : code_of(values_N[i], block.inverse, kInt4Largest) & 0xF;
  };
  for (std::size_t i = 0; i < kBlockValues / 2; ++i) {
    wire_B[i] = static_cast<std::byte>(nibble(i) | nibble(i + kBlockValues / 2) << 4);
  }
}

Block int4_decode_block(const std::byte* wire_B) {
  const float scale = read_scale(wire_B);
  wire_B += kBlockScaleBytes;
  std::array<int, kBlockValues> codes_N;  // integers: exact, in any order of sums
  for (std::size_t i = 0; i < kBlockValues / 2; ++i) {
    const int byte = static_cast<int>(wire_B[i]);
    codes_N[i] = ((byte & 0xF) ^ 8) - 8;
    codes_N[i + kBlockValues / 2] = ((byte >> 4) ^ 8) - 8;
  }
  hadamard_transform(codes_N);
  Block values_N;
  for (std::size_t i = 0; i < kBlockValues; ++i) {
    values_N[i] = static_cast<float>(codes_N[i] * kDecodeSigns[i]) * scale;
  }
  return values_N;
}

void int4_encode(std::span<const float> values_N, std::byte* wire_B) {
  for (; !values_N.empty(); wire_B += kInt4BlockBytes) {
    const auto block_N = values_N.first(std::min(values_N.size(), kBlockValues));
    Block padded_N{};
    std::ranges::copy(block_N, padded_N.begin());
    int4_encode_block(padded_N, wire_B);
    values_N = values_N.subspan(block_N.size());
  }
}

void int4_decode(const std::byte* wire_B, std::span<float> values_N) {
  for (; !values_N.empty(); wire_B += kInt4BlockBytes) {
    const auto block_N = values_N.first(std::min(values_N.size(), kBlockValues));
    const Block padded_N = int4_decode_block(wire_B);
    std::copy_n(padded_N.begin(), block_N.size(), block_N.begin());
    values_N = values_N.subspan(block_N.size());
  }
}

std::size_t block_count(std::size_t count) {
  return count / kBlockValues + (count % kBlockValues != 0 ? 1 : 0);
}

}  // namespace

std::size_t int8_bytes(std::size_t count) {
  return count + block_count(count) * kBlockScaleBytes;
}

std::size_t int4_bytes(std::size_t count) {
  return block_count(count) * kInt4BlockBytes;
}

const BlockKernels& scalar_block_kernels() {
  static constexpr BlockKernels kKernels = {
      {int8_encode, int8_decode, decode_add_pieces<int8_bytes, int8_decode>,
       encode_feedback_pieces<int8_bytes, int8_encode, int8_decode>},
      {int4_encode, int4_decode, decode_add_pieces<int4_bytes, int4_decode>,
       encode_feedback_pieces<int4_bytes, int4_encode, int4_decode>}};
  return kKernels;
}

}  // namespace motley
