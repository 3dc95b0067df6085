#include "compression/codec/format_kernels.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "compression/formats/block_quantise.h"
#include "compression/formats/dense_formats.h"
#include "compression/formats/half.h"
#include "tests/compression/slices.h"
#include "tests/compression/target_kernels.h"
#include "tests/support/property.h"

namespace motley {
namespace {

constexpr std::size_t kLengthMax = 1100;  // more than two pieces

struct Format {
  std::string name;
  std::size_t (*bytes)(std::size_t count);
  FormatKernels reference;
  FormatKernels tested;
};

// Every format with every implementation that this processor can run.
std::vector<Format> all_formats() {
  const HalfKernels& half = scalar_half_kernels();
  const BlockKernels& block = scalar_block_kernels();
  const FixedSizeFormat none = fp32_format();
  std::vector<Format> formats = {{"none", none.bytes, none, none},
                                 {"fp16", half_bytes, half.fp16, half.fp16},
                                 {"bf16", half_bytes, half.bf16, half.bf16},
                                 {"int8", int8_bytes, block.int8, block.int8},
                                 {"int4", int4_bytes, block.int4, block.int4}};
  for (const HalfKernels& fast : kernels_of_every_target(best_half_kernels)) {
    formats.push_back({"vector fp16", half_bytes, half.fp16, fast.fp16});
    formats.push_back({"vector bf16", half_bytes, half.bf16, fast.bf16});
  }
  for (const BlockKernels& fast : kernels_of_every_target(best_block_kernels)) {
    formats.push_back({"vector int8", int8_bytes, block.int8, fast.int8});
    formats.push_back({"vector int4", int4_bytes, block.int4, fast.int4});
  }
  return formats;
}

// All NaNs compare as equal: the sum of two NaNs may have the payload of either.
std::vector<std::uint32_t> bits_of(const Floats& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::isnan(value) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

struct Fed {
  Bytes wire;
  std::vector<std::uint32_t> residual;

  bool operator==(const Fed&) const = default;
};

// Straightforward implementation of the algorithm.
Fed fed_by_hand(const Format& format, const Floats& gradient, Floats residual) {
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += gradient[i];
  Bytes wire(format.bytes(residual.size()));
  Floats sent(residual.size());
  format.reference.encode(residual, wire.data());
  format.reference.decode(wire.data(), sent);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    residual[i] -= sent[i];
    if (!std::isfinite(residual[i])) residual[i] = 0;
  }
  return {wire, bits_of(residual)};
}

// Runs on slices `offset` elements (bytes on the wire) after an aligned address. Checks that the
// data after them stays unchanged.
Fed fed(const Format& format, const Floats& gradient, const Floats& residual, std::size_t offset) {
  const std::size_t count = residual.size();
  Floats shifted_gradient(offset);
  shifted_gradient.insert(shifted_gradient.end(), gradient.begin(), gradient.end());
  Floats shifted(offset);
  shifted.insert(shifted.end(), residual.begin(), residual.end());
  shifted.push_back(42);
  const std::size_t bytes = format.bytes(count);
  Bytes wire(offset + bytes + 1, std::byte{0xA5});
  format.tested.encode_feedback(std::span<const float>(shifted_gradient).subspan(offset),
                                std::span(shifted).subspan(offset, count), wire.data() + offset);
  EXPECT_EQ(wire.back(), std::byte{0xA5});
  EXPECT_EQ(shifted.back(), 42);
  const auto begin = static_cast<std::ptrdiff_t>(offset);
  return {{wire.begin() + begin, wire.end() - 1},
          bits_of({shifted.begin() + begin, shifted.end() - 1})};
}

Floats added(const Format& format, const Bytes& wire, const Floats& sum, std::size_t offset) {
  Bytes shifted_wire(offset);
  shifted_wire.insert(shifted_wire.end(), wire.begin(), wire.end());
  Floats shifted(offset);
  shifted.insert(shifted.end(), sum.begin(), sum.end());
  shifted.push_back(42);
  format.tested.decode_add(shifted_wire.data() + offset,
                           std::span(shifted).subspan(offset, sum.size()));
  EXPECT_EQ(shifted.back(), 42);
  return {shifted.begin() + static_cast<std::ptrdiff_t>(offset), shifted.end() - 1};
}

Floats added_by_hand(const Format& format, const Bytes& wire, Floats sum) {
  Floats values(sum.size());
  format.reference.decode(wire.data(), values);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  return sum;
}

Floats any_bits(std::size_t count) {
  Floats values;
  for (const auto bits : *rc::gen::container<std::vector<std::uint32_t>>(
           count, rc::gen::arbitrary<std::uint32_t>())) {
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

class EveryFormat : public testing::TestWithParam<Format> {};

TEST_P(EveryFormat, FeedsBackAsByHandForAllLengths) {
  for (std::size_t length = 0; length <= kLengthMax; length += length < 300 ? 1 : 97) {
    const Floats gradient = normal_slice(length, 1);
    const Floats residual = normal_slice(length, 2);
    ASSERT_EQ(fed(GetParam(), gradient, residual, length % 19),
              fed_by_hand(GetParam(), gradient, residual))
        << length;
  }
}

TEST_P(EveryFormat, FeedsBackAsByHandForAnyBits) {
  EXPECT_TRUE(rc::check("any gradient, and a finite residual or any", [] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 600);
    const Floats gradient = any_bits(count);
    const Floats residual = *rc::gen::arbitrary<bool>() ? any_bits(count) : normal_slice(count);
    RC_ASSERT(fed(GetParam(), gradient, residual, 1) ==
              fed_by_hand(GetParam(), gradient, residual));
  }));
}

TEST_P(EveryFormat, KeepsFiniteResidualsOfAnyGradient) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Floats gradient = normal_slice(700);
    gradient[5] = gradient[600] = gradient[699] = bad;
    for (const auto bits : fed(GetParam(), gradient, Floats(700, 0.5F), 0).residual) {
      ASSERT_TRUE(std::isfinite(std::bit_cast<float>(bits)));
    }
  }
}

TEST_P(EveryFormat, AddsAsByHandForAllLengths) {
  for (std::size_t length = 0; length <= kLengthMax; length += length < 300 ? 1 : 97) {
    Bytes wire(GetParam().bytes(length));
    GetParam().reference.encode(normal_slice(length, 1), wire.data());
    const Floats sum = normal_slice(length, 2);
    ASSERT_EQ(bits_of(added(GetParam(), wire, sum, length % 19)),
              bits_of(added_by_hand(GetParam(), wire, sum)))
        << length;
  }
}

TEST_P(EveryFormat, AddsAnyBytesAsByHand) {
  EXPECT_TRUE(rc::check("any bytes", [] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 600);
    const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(
        GetParam().bytes(count), rc::gen::arbitrary<std::uint8_t>());
    Bytes wire;
    for (const auto byte : bytes) wire.push_back(std::byte{byte});
    const Floats sum = any_bits(count);
    RC_ASSERT(bits_of(added(GetParam(), wire, sum, 3)) ==
              bits_of(added_by_hand(GetParam(), wire, sum)));
  }));
}

INSTANTIATE_TEST_SUITE_P(Formats,
                         EveryFormat,
                         testing::ValuesIn(all_formats()),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace motley
