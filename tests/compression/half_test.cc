#include "compression/formats/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "tests/compression/target_kernels.h"

namespace motley {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// Every boundary of both formats, with neighbours, both signs, and NaNs of each kind.
std::vector<float> special_values() {
  std::vector<float> values;
  for (const float centre :
       {0.0F, 0x1p-25F, 0x1p-24F, 0x1.8p-24F, 0x1p-14F, 1.0F, 2049.0F, 2051.0F, 65504.0F, 65520.0F,
        65536.0F, 0x1.FEp127F, 0x1.FFp127F, std::numeric_limits<float>::denorm_min(),
        std::numeric_limits<float>::min(), std::numeric_limits<float>::max(), kInf}) {
    for (const float value : {std::nextafter(centre, 0.0F), centre, std::nextafter(centre, kInf)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (const std::uint32_t nan : {0x7F800001U, 0x7FC00000U, 0xFF801000U, 0xFFFFFFFFU}) {
    values.push_back(from_bits(nan));
  }
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

using Encode = void (*)(std::span<const float>, std::byte*);
using Decode = void (*)(const std::byte*, std::span<float>);

// Encodes from and to positions `offset` elements (bytes on the wire) after an aligned address.
std::vector<std::byte> encoded(Encode encode,
                               const std::vector<float>& values,
                               std::size_t offset) {
  std::vector<float> shifted(offset);
  shifted.insert(shifted.end(), values.begin(), values.end());
  std::vector<std::byte> wire(offset + 2 * values.size());
  encode(std::span(shifted).subspan(offset), wire.data() + offset);
  return {wire.begin() + static_cast<std::ptrdiff_t>(offset), wire.end()};
}

std::vector<std::uint32_t> decoded(Decode decode,
                                   const std::vector<std::byte>& wire,
                                   std::size_t offset) {
  std::vector<std::byte> shifted(offset);
  shifted.insert(shifted.end(), wire.begin(), wire.end());
  std::vector<float> values(offset + wire.size() / 2);
  decode(shifted.data() + offset, std::span(values).subspan(offset));
  return bits_of({values.begin() + static_cast<std::ptrdiff_t>(offset), values.end()});
}

TEST(Fp16, RoundsToNearestEven) {
  EXPECT_EQ(fp16_from_float(1.0F), 0x3C00);
  EXPECT_EQ(fp16_from_float(2049.0F), 0x6800);   // halfway between 2048 and 2050
  EXPECT_EQ(fp16_from_float(2051.0F), 0x6802);   // halfway between 2050 and 2052
  EXPECT_EQ(fp16_from_float(0x1p-25F), 0x0000);  // halfway between 0 and the smallest
  EXPECT_EQ(fp16_from_float(0x1.8p-24F), 0x0002);
  EXPECT_EQ(fp16_from_float(-0.0F), 0x8000);
}

TEST(Fp16, SaturatesFiniteValuesAndKeepsInfinity) {
  EXPECT_EQ(fp16_from_float(65520.0F), 0x7BFF);
  EXPECT_EQ(fp16_from_float(-1e30F), 0xFBFF);
  EXPECT_EQ(fp16_from_float(kInf), 0x7C00);
  EXPECT_EQ(fp16_from_float(-kInf), 0xFC00);
  EXPECT_TRUE(std::isnan(float_from_fp16(fp16_from_float(from_bits(0x7F800001)))));
}

TEST(Bf16, RoundsToNearestEvenAndSaturates) {
  EXPECT_EQ(bf16_from_float(from_bits(0x3F808000)), 0x3F80);
  EXPECT_EQ(bf16_from_float(from_bits(0x3F818000)), 0x3F82);
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::max()), 0x7F7F);
  EXPECT_EQ(bf16_from_float(-kInf), 0xFF80);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(from_bits(0x7F800001)))));
}

TEST(Fp16, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t half = 0; half <= 0xFFFF; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const float value = float_from_fp16(bits);
    const bool nan = (bits & 0x7FFF) > 0x7C00;
    EXPECT_EQ(fp16_from_float(value), nan ? bits | 0x0200 : bits);
  }
}

TEST(Fp16, ErrorIsAtMostHalfAUnit) {
  EXPECT_TRUE(rc::check("the nearest half is within half a unit in the last place", [] {
    const auto value = from_bits(*rc::gen::inRange<std::uint32_t>(0, 0x477FE001));  // 0 … 65504
    const float unit = std::max(std::exp2(std::floor(std::log2(value)) - 10.0F), 0x1p-24F);
    RC_ASSERT(std::abs(float_from_fp16(fp16_from_float(value)) - value) <= unit / 2);
  }));
}

class VectorKernels : public testing::TestWithParam<HalfKernels> {
 protected:
  static void expect_equal_to_reference(const std::vector<float>& values, std::size_t offset) {
    const HalfKernels& fast = GetParam();
    const HalfKernels& reference = scalar_half_kernels();
    EXPECT_EQ(encoded(fast.fp16.encode, values, offset),
              encoded(reference.fp16.encode, values, offset));
    EXPECT_EQ(encoded(fast.bf16.encode, values, offset),
              encoded(reference.bf16.encode, values, offset));
  }
};

TEST_P(VectorKernels, EncodeAsTheReferenceForAllLengthsAndAlignments) {
  const std::vector<float> special = special_values();
  for (std::size_t length = 0; length <= special.size(); ++length) {
    for (std::size_t offset = 0; offset < 5; ++offset) {
      expect_equal_to_reference(
          {special.begin(), special.begin() + static_cast<std::ptrdiff_t>(length)}, offset);
    }
  }
}

TEST_P(VectorKernels, EncodeAsTheReferenceForAnyBits) {
  EXPECT_TRUE(rc::check("any 32 bits", [] {
    std::vector<float> values;
    for (const auto bits :
         *rc::gen::container<std::vector<std::uint32_t>>(64, rc::gen::arbitrary<std::uint32_t>())) {
      values.push_back(from_bits(bits));
    }
    expect_equal_to_reference(values, 0);
  }));
}

TEST_P(VectorKernels, DecodeAsTheReferenceForEveryHalf) {
  std::vector<std::uint16_t> halves(0x10003);  // not a multiple of the lanes
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<std::byte> wire(2 * halves.size());
  std::memcpy(wire.data(), halves.data(), wire.size());
  for (const std::size_t offset : {0U, 1U, 3U}) {
    EXPECT_EQ(decoded(GetParam().fp16.decode, wire, offset),
              decoded(scalar_half_kernels().fp16.decode, wire, offset));
    EXPECT_EQ(decoded(GetParam().bf16.decode, wire, offset),
              decoded(scalar_half_kernels().bf16.decode, wire, offset));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets,
                         VectorKernels,
                         testing::ValuesIn(kernels_of_every_target(best_half_kernels)),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace motley
