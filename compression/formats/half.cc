#include "compression/formats/half.h"

#include <bit>
#include <cstring>

#include "compression/kernels/piecewise.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

constexpr std::uint32_t kFloatInf = 0x7F800000;
constexpr std::uint32_t kFp16SmallestNormal = 0x38800000;  // 2^-14 as a float
constexpr std::uint16_t kFp16Largest = 0x7BFF;
constexpr std::uint16_t kBf16Largest = 0x7F7F;

// Computes bits / 2^shift, rounded to nearest, ties to even.
std::uint32_t shift_round_even(std::uint32_t bits, int shift) {
  const std::uint32_t half = 1U << (shift - 1);
  const std::uint32_t odd = (bits >> shift) & 1U;
  return (bits + (half - 1) + odd) >> shift;
}

std::uint16_t fp16_magnitude(std::uint32_t magnitude) {
  if (magnitude > kFloatInf) {
    return static_cast<std::uint16_t>(0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  if (magnitude == kFloatInf) return 0x7C00;
  if (magnitude < kFp16SmallestNormal) {
    // A subnormal of fp16 has units of 2^-24: shift the significand, hidden bit included.
    const int shift = 126 - static_cast<int>(magnitude >> 23);
    if (shift > 24) return 0;
    return static_cast<std::uint16_t>(shift_round_even((magnitude & 0x7FFFFFU) | 0x800000U, shift));
  }
  const std::uint32_t rebased = magnitude - ((127U - 15U) << 23);
  const std::uint32_t rounded = shift_round_even(rebased, 13);
  return rounded > kFp16Largest ? kFp16Largest : static_cast<std::uint16_t>(rounded);
}

template <std::uint16_t (*Convert)(float)>
void encode_each(std::span<const float> values_N, std::byte* wire_B) {
  for (const float value : values_N) {
    const std::uint16_t half = Convert(value);
    std::memcpy(wire_B, &half, sizeof half);
    wire_B += sizeof half;
  }
}

template <float (*Convert)(std::uint16_t)>
void decode_each(const std::byte* wire_B, std::span<float> values_N) {
  for (float& value : values_N) {
    std::uint16_t half = 0;
    std::memcpy(&half, wire_B, sizeof half);
    value = Convert(half);
    wire_B += sizeof half;
  }
}

template <std::uint16_t (*Narrow)(float), float (*Widen)(std::uint16_t)>
constexpr FormatKernels kEachValue = {
    encode_each<Narrow>, decode_each<Widen>, decode_add_pieces<half_bytes, decode_each<Widen>>,
    encode_feedback_pieces<half_bytes, encode_each<Narrow>, decode_each<Widen>>};

}  // namespace

std::uint16_t fp16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | fp16_magnitude(bits & 0x7FFFFFFFU));
}

float float_from_fp16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  if (magnitude > 0x7C00) {
    return std::bit_cast<float>(sign | 0x7FC00000U | ((magnitude & 0x3FFU) << 13));
  }
  if (magnitude == 0x7C00) return std::bit_cast<float>(sign | kFloatInf);
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1.0p-24F;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127U - 15U) << 23)));
}

std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > kFloatInf) return static_cast<std::uint16_t>((bits >> 16) | 0x0040U);
  if (magnitude == kFloatInf) return static_cast<std::uint16_t>(sign | 0x7F80U);
  const std::uint32_t rounded = shift_round_even(magnitude, 16);
  return static_cast<std::uint16_t>(sign | (rounded > kBf16Largest ? kBf16Largest : rounded));
}

float float_from_bf16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

const HalfKernels& scalar_half_kernels() {
  static constexpr HalfKernels kKernels = {kEachValue<fp16_from_float, float_from_fp16>,
                                           kEachValue<bf16_from_float, float_from_bf16>};
  return kKernels;
}

}  // namespace motley
