#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "compression/codec_chain.h"
#include "compression/lowrank/low_rank_coder.h"
#include "tests/compression/read_low_rank.h"
#include "tests/support/property.h"

namespace motley {
namespace {

FixedSizeFormat format_of(const std::string& name) {
  return parse_codec_chain(name).value().format;
}

LowRankCoder coder_of(std::size_t rank, const std::string& format) {
  return {rank, format_of(format)};
}

// On memory that begins a byte off any alignment; what lies behind stays as it was.
Bytes encoded(const LowRankCoder& coder, const Floats& values) {
  Bytes wire(coder.bytes(values.size()) + 2, std::byte{0xA5});
  coder.encode(values, wire.data() + 1);
  EXPECT_EQ(wire.back(), std::byte{0xA5});
  return {wire.begin() + 1, wire.end() - 1};
}

Floats decoded(const LowRankCoder& coder, const Bytes& wire, std::size_t count) {
  Floats values(count, 42.0F);
  coder.decode(wire.data(), values);
  return values;
}

Floats approximated(const LowRankCoder& coder, const Floats& values) {
  return decoded(coder, encoded(coder, values), values.size());
}

// NaNs are equal to each other here.
std::vector<std::uint32_t> bits_of(const Floats& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::isnan(value) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

double norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

Floats difference(const Floats& a, const Floats& b) {
  Floats values(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) values[i] = a[i] - b[i];
  return values;
}

// The sum of `rank` products of vectors, each half the one before, in rows of `columns`.
Floats slice_of_rank(std::size_t rank, std::size_t count, std::size_t columns, unsigned seed) {
  const std::size_t rows = (count + columns - 1) / columns;
  const Floats left = normal_slice(rank * rows, seed);
  const Floats right = normal_slice(rank * columns, seed + 1);
  Floats values(count);
  for (std::size_t r = 0; r < rank; ++r) {
    for (std::size_t k = 0; k < count; ++k) {
      values[k] += std::ldexp(left[r * rows + k / columns] * right[r * columns + k % columns],
                              -static_cast<int>(r));
    }
  }
  return values;
}

Floats scaled(Floats values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

rc::Gen<std::size_t> any_count() {
  return rc::gen::oneOf(rc::gen::inRange<std::size_t>(0, 700),
                        rc::gen::inRange<std::size_t>(700, 20'000),
                        rc::gen::inRange<std::size_t>(65'000, 68'000));
}

TEST(LowRank, TakesTheSquarestShape) {
  const auto shape = [](std::size_t count) {
    const MatrixShape some = low_rank_shape(count);
    return std::pair(some.rows, some.columns);
  };
  EXPECT_EQ(shape(1), std::pair(std::size_t{1}, std::size_t{16}));
  EXPECT_EQ(shape(256), std::pair(std::size_t{16}, std::size_t{16}));
  EXPECT_EQ(shape(257), std::pair(std::size_t{9}, std::size_t{32}));
  EXPECT_EQ(shape(16'385), std::pair(std::size_t{65}, std::size_t{256}));
  EXPECT_EQ(shape(65'536), std::pair(std::size_t{256}, std::size_t{256}));
}

TEST(LowRank, TakesAsManyBytesAsTheDocumentSays) {
  const LowRankCoder coder = coder_of(4, "fp16");
  EXPECT_EQ(coder.bytes(0), 0U);
  EXPECT_EQ(coder.bytes(256), 16U + 2 * 4 * (16 + 16));
  EXPECT_EQ(coder.bytes(255), 2U * 255);
  EXPECT_EQ(coder.bytes(65'536), 4112U);
  EXPECT_EQ(coder.bytes(2 * 65'536 + 10), 2 * 4112U + 20);
  EXPECT_EQ(coder_of(1, "int8").bytes(4096), 4U + 2 * (64 + 4));
}

// docs/formats/frame.md has this message.
TEST(LowRank, WritesTheDocumentedBytes) {
  Floats values(64);
  for (std::size_t row = 0; row < 4; ++row) {
    values[16 * row] = 1;
    values[16 * row + 3] = -3;
  }
  Bytes wire(44);
  const auto put = [&](std::size_t at, std::initializer_list<int> numbers) {
    for (const int number : numbers) wire[at++] = static_cast<std::byte>(number);
  };
  put(0, {0, 0, 0, 0x41, 0, 0x38, 0, 0x38, 0, 0x38, 0, 0x38, 0, 0x34});
  put(18, {0, 0xBA});
  const LowRankCoder coder = coder_of(1, "fp16");
  EXPECT_EQ(encoded(coder, values), wire);
  EXPECT_EQ(decoded(coder, wire, 64), values);
}

RC_GTEST_PROP(LowRank, IsReadAsTheDocumentSays, ()) {
  const auto count = *any_count();
  const auto rank = *rc::gen::inRange<std::size_t>(1, 10);
  const auto format = *rc::gen::element<std::string>("none", "fp16", "int8");
  const LowRankCoder coder = coder_of(rank, format);
  const Bytes wire = encoded(coder, heavy_slice(count, *rc::gen::inRange(0U, 1000U)));
  const auto values = LowRankReader(wire, rank, format).read(count);
  RC_ASSERT(values.has_value());
  RC_ASSERT(bits_of(decoded(coder, wire, count)) == bits_of(*values));
}

RC_GTEST_PROP(LowRank, ReadsAnyBytesAsTheDocumentSays, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 3000);
  const LowRankCoder coder = coder_of(2, "fp16");
  Bytes wire;
  for (const auto byte : *rc::gen::container<std::vector<std::uint8_t>>(
           coder.bytes(count), rc::gen::arbitrary<std::uint8_t>())) {
    wire.push_back(std::byte{byte});
  }
  const auto values = LowRankReader(wire, 2, "fp16").read(count);
  RC_ASSERT(values.has_value());
  RC_ASSERT(bits_of(decoded(coder, wire, count)) == bits_of(*values));
}

RC_GTEST_PROP(LowRank, WritesTheSameBytesWithAllKernels, ()) {
  const auto values = heavy_slice(*any_count(), *rc::gen::inRange(0U, 1000U));
  const auto rank = *rc::gen::inRange<std::size_t>(1, 8);
  const FixedSizeFormat format = format_of("none");
  const Bytes expected = encoded({rank, format, scalar_matrix_kernels()}, values);
  for (const MatrixKernels* kernels : {avx2_matrix_kernels(), avx512_matrix_kernels()}) {
    if (kernels != nullptr) RC_ASSERT(encoded({rank, format, *kernels}, values) == expected);
  }
}

// A last row that is cut short is a direction of its own. The other vector more than the rank is
// for starts that hardly touch one of the directions, as about one in 10,000 does by chance.
RC_GTEST_PROP(LowRank, BringsAMatrixOfThatRankBack, ()) {
  const auto rank = *rc::gen::inRange<std::size_t>(1, 6);
  const std::vector<std::pair<std::size_t, std::size_t>> shapes = {
      {1000, 32}, {9999, 128}, {60'000, 256}, {65'536, 256}};
  const auto [count, columns] = *rc::gen::elementOf(shapes);
  const auto magnitude = *rc::gen::element(1e-30F, 1e-7F, 1.0F, 1e30F);
  const Floats values =
      scaled(slice_of_rank(rank, count, columns, *rc::gen::inRange(0U, 1000U)), magnitude);
  for (const auto& [format, off] : {std::pair{"none", 1e-5}, {"fp16", 1e-3}, {"int8", 0.02}}) {
    const Floats rest = difference(values, approximated(coder_of(rank + 2, format), values));
    RC_ASSERT(norm(scaled(rest, 1 / magnitude)) <= off * norm(scaled(values, 1 / magnitude)));
  }
}

// The best that there is would leave the noise, but for the part of it in those directions.
TEST(LowRank, FindsWhatStandsOutOfNoise) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Floats noise = normal_slice(65'536, seed + 100);
    Floats values = scaled(slice_of_rank(4, 65'536, 256, seed), 4);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += noise[i];
    const Floats rest = difference(values, approximated(coder_of(4, "fp16"), values));
    EXPECT_LT(norm(rest), 1.01 * norm(noise));
  }
}

RC_GTEST_PROP(LowRank, LeavesNeverMoreThanThereWas, ()) {
  const auto count = *any_count();
  const auto seed = *rc::gen::inRange(0U, 1000U);
  const Floats values =
      *rc::gen::arbitrary<bool>() ? heavy_slice(count, seed) : normal_slice(count, seed);
  const auto format = *rc::gen::element<std::string>("none", "fp16", "bf16", "int8");
  const LowRankCoder coder = coder_of(*rc::gen::inRange<std::size_t>(1, 10), format);
  RC_ASSERT(norm(difference(values, approximated(coder, values))) <= 1.001 * norm(values));
}

TEST(LowRank, KeepsZerosAndWhatIsOfALowerRank) {
  const LowRankCoder coder = coder_of(4, "fp16");
  EXPECT_EQ(approximated(coder, Floats(5000)), Floats(5000));
  const Floats ones(5000, 1.0F);
  EXPECT_LT(norm(difference(ones, approximated(coder, ones))), 1e-3 * norm(ones));
  Floats single(5000);
  single[1234] = -7;
  EXPECT_EQ(approximated(coder, single), single);
}

TEST(LowRank, KeepsFiniteWhatIs) {
  for (const float largest : {FLT_MAX, 1e38F, 1e-38F, FLT_TRUE_MIN}) {
    for (Floats values : {Floats(70'000, largest), Floats(70'000, -largest)}) {
      values[77] = largest;
      for (const float value : approximated(coder_of(8, "fp16"), values)) {
        ASSERT_TRUE(std::isfinite(value)) << largest;
      }
    }
  }
}

TEST(LowRank, ShowsWhatIsNotFiniteInItsMatrixOnly) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Floats values = normal_slice(2 * 65'536 + 50);
    values[65'536 + 300] = bad;
    const Floats shown = approximated(coder_of(2, "int8"), values);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      ASSERT_EQ(std::isnan(shown[i]), i / 65'536 == 1) << i;
    }
  }
}

// What one message leaves out comes in its turn, so that the residual does not grow with the steps.
TEST(LowRank, OwesLittleAfterManyStepsWithFeedback) {
  const Floats gradient = slice_of_rank(6, 10'000, 128, 1);
  const LowRankCoder coder = coder_of(1, "fp16");
  Floats residual(gradient.size());
  Bytes wire(coder.bytes(gradient.size()));
  for (int step = 0; step < 200; ++step) coder.encode_feedback(gradient, residual, wire.data());
  EXPECT_LT(norm(residual), 10 * norm(gradient));
}

TEST(LowRank, AddsAndFeedsBackWhatItDecodes) {
  const LowRankCoder coder = coder_of(3, "fp16");
  const Floats gradient = normal_slice(70'000);
  Floats residual = normal_slice(70'000, 2);
  Floats whole(gradient.size());
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = residual[i] + gradient[i];
  const Bytes expected = encoded(coder, whole);
  const Floats sent = decoded(coder, expected, whole.size());
  Bytes wire(expected.size());
  coder.encode_feedback(gradient, residual, wire.data());
  EXPECT_EQ(wire, expected);
  EXPECT_EQ(residual, difference(whole, sent));
  Floats sum = gradient;
  coder.decode_add(wire.data(), sum);
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], gradient[i] + sent[i]) << i;
}

}  // namespace
}  // namespace motley
