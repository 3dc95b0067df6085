#include "compression/formats/block_quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/compression/target_kernels.h"
#include "tests/support/property.h"

namespace motley {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kLengthMax = 1000;

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

struct Coding {
  const char* name;
  std::size_t (*bytes)(std::size_t count);
  FormatKernels BlockKernels::*kernels;
};

constexpr Coding kInt8 = {"int8", int8_bytes, &BlockKernels::int8};
constexpr Coding kInt4 = {"int4", int4_bytes, &BlockKernels::int4};

std::vector<BlockKernels> vector_kernels() {
  return kernels_of_every_target(best_block_kernels);
}

// Encodes from and to memory `offset` elements (bytes on the wire) after an aligned address.
// Checks that the byte after the output stays unchanged.
Bytes encoded(const BlockKernels& kernels,
              const Coding& coding,
              const Floats& values,
              std::size_t offset = 0) {
  Floats shifted(offset);
  shifted.insert(shifted.end(), values.begin(), values.end());
  const std::size_t bytes = coding.bytes(values.size());
  Bytes wire(offset + bytes + 1, std::byte{0xA5});
  (kernels.*coding.kernels).encode(std::span(shifted).subspan(offset), wire.data() + offset);
  EXPECT_EQ(wire.back(), std::byte{0xA5});
  return {wire.begin() + static_cast<std::ptrdiff_t>(offset), wire.end() - 1};
}

Floats decoded(const BlockKernels& kernels,
               const Coding& coding,
               const Bytes& wire,
               std::size_t count,
               std::size_t offset = 0) {
  Bytes shifted(offset);
  shifted.insert(shifted.end(), wire.begin(), wire.end());
  Floats values(offset + count + 1, 42.0F);
  (kernels.*coding.kernels)
      .decode(shifted.data() + offset, std::span(values).subspan(offset, count));
  EXPECT_EQ(values.back(), 42.0F);
  return {values.begin() + static_cast<std::ptrdiff_t>(offset), values.end() - 1};
}

// Encodes and decodes with the fastest kernels of this processor.
Floats through(const Coding& coding, const Floats& values) {
  const BlockKernels& kernels = best_block_kernels();
  return decoded(kernels, coding, encoded(kernels, coding, values), values.size());
}

std::vector<std::uint32_t> bits_of(const Floats& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

float scale_at(const Bytes& wire, std::size_t place) {
  float scale = 0;
  std::memcpy(&scale, wire.data() + place, sizeof scale);
  return scale;
}

// A second implementation of docs/formats/frame.md, value by value, in double and without a fast
// transform.
double value_by_the_document(const Coding& coding, const Bytes& wire, std::size_t index) {
  const std::size_t block = index / 128;
  const std::size_t i = index % 128;
  const std::size_t start = block * (coding.bytes == int8_bytes ? 132 : 68);
  const double scale = scale_at(wire, start);
  const auto byte = [&](std::size_t j) { return static_cast<int>(wire[start + 4 + j]); };
  if (coding.bytes == int8_bytes) return scale * (byte(i) < 128 ? byte(i) : byte(i) - 256);
  const auto bit = [&](int k) { return static_cast<int>(i >> k & 1); };
  double sum = 0;
  for (std::size_t j = 0; j < 128; ++j) {
    const int nibble = j < 64 ? byte(j) % 16 : byte(j - 64) / 16;
    const int code = nibble < 8 ? nibble : nibble - 16;
    sum += std::popcount(i & j) % 2 == 0 ? code : -code;
  }
  const bool negative = (bit(0) * bit(1) + bit(2) * bit(3) + bit(4) * bit(5)) % 2 == 1;
  return scale * (negative ? -sum : sum);
}

// Every length, and the cases for which the bounds are claimed: zeros, subnormals, powers over the
// whole range, equal values, one outlier.
rc::Gen<Floats> any_finite_values() {
  return rc::gen::exec([] {
    const auto count = *rc::gen::inRange<std::size_t>(0, kLengthMax + 1);
    const auto kind = *rc::gen::inRange(0, 6);
    const auto power = *rc::gen::inRange(-149, 119);
    const auto bits = *rc::gen::container<std::vector<std::uint32_t>>(
        count, rc::gen::inRange<std::uint32_t>(0, 1U << 24));
    Floats values;
    for (const std::uint32_t b : bits) {
      const float unit = static_cast<float>(b) / 0x1p23F - 1;  // -1 to 1
      const int own_power = kind == 3 ? static_cast<int>(b % 268) - 149 : power;
      values.push_back(std::ldexp(unit, own_power));
    }
    if (kind == 0) std::ranges::fill(values, 0.0F);
    if (kind == 1 && count > 0) std::ranges::fill(values, values.front());
    if (kind == 2 && count > 0) values.back() = std::ldexp(1.0F, 118);
    if (kind == 4) {
      for (float& value : values) value += std::ldexp(1.0F, power);  // all near a mean
    }
    return values;
  });
}

rc::Gen<Bytes> any_bytes(std::size_t count) {
  return rc::gen::container<Bytes>(
      count, rc::gen::map(rc::gen::arbitrary<std::uint8_t>(), [](auto b) { return std::byte{b}; }));
}

TEST(BlockScale, IsAShareOfTheLargestAndNeverSubnormal) {
  const auto int8_scale = [](float largest) {
    return block_scale(std::bit_cast<std::uint32_t>(largest), kInt8Largest, kInt8ScaleMax);
  };
  EXPECT_EQ(int8_scale(254).scale, 2);
  EXPECT_EQ(int8_scale(0x1p-149F).scale, 0x1p-126F);
  EXPECT_EQ(int8_scale(0x1p-149F).inverse, 0x1p126F);
  EXPECT_EQ(int8_scale(0).scale, 0);
  EXPECT_TRUE(std::isnan(int8_scale(kInf).scale));
  EXPECT_EQ(int8_scale(FLT_MAX).scale, kInt8ScaleMax);
}

TEST(BlockScale, IsAsLargeAsStaysFinite) {
  EXPECT_TRUE(std::isfinite(kInt8Largest * kInt8ScaleMax));
  EXPECT_FALSE(std::isfinite(kInt8Largest * std::nextafter(kInt8ScaleMax, kInf)));
  EXPECT_TRUE(std::isfinite(128 * kInt4Largest * kInt4ScaleMax));
}

TEST(Int8, WritesTheBytesOfTheDocument) {
  const Bytes expected = {std::byte{0x00}, std::byte{0x00}, std::byte{0x80}, std::byte{0x3F},
                          std::byte{0x01}, std::byte{0x81}, std::byte{0x02}};
  EXPECT_EQ(encoded(best_block_kernels(), kInt8, {1, -127, 2.5F}), expected);
}

TEST(Int4, WritesTheBytesOfTheDocument) {
  Floats values;
  for (std::size_t i = 0; i < 128; ++i) {
    const float value = (i % 2 == 0 ? 4.0F : 10.0F) + (i < 64 ? 2.0F : -2.0F);
    const bool negative = ((i & 3) == 3) != (((i & 12) == 12) != ((i & 48) == 48));
    values.push_back(negative ? -value : value);
  }
  Bytes expected(68);
  expected[2] = std::byte{0x80};
  expected[3] = std::byte{0x3F};
  expected[4] = std::byte{0x27};
  expected[5] = std::byte{0x0D};
  EXPECT_EQ(encoded(best_block_kernels(), kInt4, values), expected);
  EXPECT_EQ(through(kInt4, values), values);
}

RC_GTEST_PROP(Int8, IsOffByHalfACodeAtMost, ()) {
  const Floats values = *any_finite_values();
  const Bytes wire = encoded(best_block_kernels(), kInt8, values);
  const Floats back = decoded(best_block_kernels(), kInt8, wire, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = scale_at(wire, i / 128 * 132);
    const double error = std::abs(static_cast<double>(values[i]) - back[i]);
    RC_ASSERT(error <= scale * (0.5 + 0x1p-15));
  }
}

RC_GTEST_PROP(Int4, IsOffByNoMoreEnergyThanItsCodes, ()) {
  const Floats values = *any_finite_values();
  const Bytes wire = encoded(best_block_kernels(), kInt4, values);
  const Floats back = decoded(best_block_kernels(), kInt4, wire, values.size());
  for (std::size_t first = 0; first < values.size(); first += 128) {
    const double scale = std::max<double>(scale_at(wire, first / 128 * 68), 0x1p-126);
    double error = 0;
    for (std::size_t i = first; i < std::min(first + 128, values.size()); ++i) {
      error += std::pow(static_cast<double>(values[i]) - back[i], 2);
    }
    RC_ASSERT(std::sqrt(error) <= 64 * scale * (1 + 0x1p-10));
  }
}

// Without the sign pattern the transform would concentrate the mean in one code, which would cost
// the other codes their precision.
TEST(Int4, KeepsEqualValuesAndTheirSmallDifferences) {
  EXPECT_EQ(through(kInt4, Floats(128, 56.0F)), Floats(128, 56.0F));
  Floats values(128, 1.0F);
  for (std::size_t i = 0; i < 128; ++i) values[i] += 0.25F * std::sin(static_cast<float>(i * i));
  const Floats back = through(kInt4, values);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_NEAR(back[i], values[i], 0.2F);
}

class EveryCoding : public testing::TestWithParam<Coding> {};

TEST_P(EveryCoding, DecodesAsTheDocumentSays) {
  EXPECT_TRUE(rc::check("any bytes after a sound scale", [] {
    const auto count = *rc::gen::inRange<std::size_t>(0, kLengthMax + 1);
    const Coding& coding = GetParam();
    Bytes wire = *any_bytes(coding.bytes(count));
    const std::size_t block_bytes = coding.bytes(128);
    const float scale = 0.375F;  // few bits: its product with any sum of codes is exact
    for (std::size_t at = 0; at < wire.size(); at += block_bytes) {
      std::memcpy(wire.data() + at, &scale, sizeof scale);
    }
    const Floats values = decoded(best_block_kernels(), coding, wire, count);
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(values[i] == value_by_the_document(coding, wire, i));
    }
  }));
}

TEST_P(EveryCoding, TurnsABlockThatIsNotFiniteIntoNaNAndNoOther) {
  for (const float bad : {kNan, -kNan, kInf, -kInf}) {
    for (const std::size_t place : {128U, 200U, 255U, 300U}) {
      Floats values(310, 1.0F);
      values[place] = bad;
      const Floats back = through(GetParam(), values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::isnan(back[i]), i / 128 == place / 128) << i;
      }
    }
  }
}

TEST_P(EveryCoding, KeepsWhatIsFiniteFinite) {
  for (const float sign : {1.0F, -1.0F}) {
    Floats values(200, sign * FLT_MAX);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = -FLT_MAX;
    for (const float value : through(GetParam(), values)) EXPECT_TRUE(std::isfinite(value));
    const Floats equal(200, sign * FLT_MAX);
    for (const float value : through(GetParam(), equal)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_P(EveryCoding, KeepsZeros) {
  const Bytes wire = encoded(best_block_kernels(), GetParam(), Floats(130, -0.0F));
  EXPECT_EQ(wire, Bytes(GetParam().bytes(130)));
  EXPECT_EQ(through(GetParam(), Floats(130)), Floats(130));
}

TEST_P(EveryCoding, VectorKernelsEqualTheReferenceForAllLengths) {
  Floats values(kLengthMax);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * i)) * std::exp2(static_cast<float>(i % 11));
  }
  for (std::size_t length = 0; length <= kLengthMax; ++length) {
    const Floats part(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(length));
    const std::size_t offset = length % 33;
    const Bytes wire = encoded(scalar_block_kernels(), GetParam(), part);
    const auto expected = bits_of(decoded(scalar_block_kernels(), GetParam(), wire, length));
    for (const BlockKernels& kernels : vector_kernels()) {
      ASSERT_EQ(encoded(kernels, GetParam(), part, offset), wire) << length;
      ASSERT_EQ(bits_of(decoded(kernels, GetParam(), wire, length, offset)), expected);
    }
  }
}

TEST_P(EveryCoding, VectorKernelsEqualTheReferenceForAnyValues) {
  EXPECT_TRUE(rc::check("any finite values, and any 32 bits", [] {
    Floats values = *any_finite_values();
    for (const auto bits : *rc::gen::container<std::vector<std::uint32_t>>(
             150, rc::gen::arbitrary<std::uint32_t>())) {
      values.push_back(std::bit_cast<float>(bits));
    }
    const auto offset = *rc::gen::inRange<std::size_t>(0, 33);
    const Coding& coding = GetParam();
    const Bytes expected = encoded(scalar_block_kernels(), coding, values);
    for (const BlockKernels& kernels : vector_kernels()) {
      RC_ASSERT(encoded(kernels, coding, values, offset) == expected);
    }
  }));
}

TEST_P(EveryCoding, VectorKernelsDecodeAnyBytesAsTheReference) {
  EXPECT_TRUE(rc::check("any bytes, scales too", [] {
    const auto count = *rc::gen::inRange<std::size_t>(0, kLengthMax + 1);
    const Coding& coding = GetParam();
    const Bytes wire = *any_bytes(coding.bytes(count));
    const auto expected = bits_of(decoded(scalar_block_kernels(), coding, wire, count));
    for (const BlockKernels& kernels : vector_kernels()) {
      RC_ASSERT(bits_of(decoded(kernels, coding, wire, count, 1)) == expected);
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Codings,
                         EveryCoding,
                         testing::Values(kInt8, kInt4),
                         [](const auto& coding) { return coding.param.name; });

}  // namespace
}  // namespace motley
