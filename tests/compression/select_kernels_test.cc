#include "compression/kernels/select_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "compression/kernels/add_kernels.h"
#include "compression/sparse/list_positions.h"
#include "tests/compression/slices.h"
#include "tests/compression/target_kernels.h"
#include "tests/support/property.h"

namespace motley {
namespace {

constexpr std::size_t kLengthMax = 300;

// The outputs of the kernels.
struct Marked {
  std::vector<std::uint64_t> words;
  std::vector<std::uint32_t> residual;  // as bits
  std::vector<std::uint32_t> velocity;

  bool operator==(const Marked&) const = default;
};

// All NaNs compare as equal: the sum of two NaNs may have the payload of either.
std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::isnan(value) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

// Runs all three kernels on slices `offset` floats after an aligned address.
Marked marked(const SelectKernels& kernels,
              const Floats& values,
              std::uint32_t threshold_bits,
              std::size_t offset) {
  const std::size_t count = values.size();
  Floats gradient(offset);
  gradient.insert(gradient.end(), values.begin(), values.end());
  const auto gradient_N = std::span<const float>(gradient).subspan(offset);
  Floats residual(count + offset, 0.5F);
  Floats velocity(count + offset, -0.25F);
  const std::size_t word_count = (count + 63) / 64;
  std::vector<std::uint64_t> words(3 * word_count + 1, 77);
  kernels.mark(gradient_N, threshold_bits, words.data());
  kernels.add_and_mark(gradient_N, std::span(residual).subspan(offset), threshold_bits,
                       words.data() + word_count);
  kernels.gather_and_mark(gradient_N, 0.9F, std::span(velocity).subspan(offset),
                          std::span(residual).subspan(offset), threshold_bits,
                          words.data() + 2 * word_count);
  EXPECT_EQ(words.back(), 77U);
  return {words, bits_of(residual), bits_of(velocity)};
}

std::vector<SelectKernels> vector_kernels() {
  return kernels_of_every_target(best_select_kernels);
}

TEST(SelectKernels, MarkWhatReachesTheThreshold) {
  const Floats values = {1, -1, 0.5F, -2, 0, std::nextafter(1.0F, 0.0F), INFINITY, NAN};
  std::uint64_t word = 0;
  scalar_select_kernels().mark(values, std::bit_cast<std::uint32_t>(1.0F), &word);
  EXPECT_EQ(word, 0b11001011U);
}

TEST(SelectKernels, AddBeforeTheyMark) {
  const Floats gradient = {1, -3};
  Floats residual = {1, 2};
  std::uint64_t word = 0;
  scalar_select_kernels().add_and_mark(gradient, residual, std::bit_cast<std::uint32_t>(2.0F),
                                       &word);
  EXPECT_EQ(residual, (Floats{2, -1}));
  EXPECT_EQ(word, 0b01U);
}

TEST(SelectKernels, GatherSpeedBeforeTheyMark) {
  const Floats gradient = {1, -3};
  Floats velocity = {2, 2};
  Floats residual = {1, 2};
  std::uint64_t word = 0;
  scalar_select_kernels().gather_and_mark(gradient, 0.5F, velocity, residual,
                                          std::bit_cast<std::uint32_t>(2.0F), &word);
  EXPECT_EQ(velocity, (Floats{2, -2}));
  EXPECT_EQ(residual, (Floats{3, 0}));
  EXPECT_EQ(word, 0b01U);
}

TEST(SelectKernels, VectorKernelsEqualTheReferenceForAllLengths) {
  const auto threshold_bits = std::bit_cast<std::uint32_t>(1.0F);
  for (std::size_t length = 0; length <= kLengthMax; ++length) {
    const Floats values = normal_slice(length);
    const Marked expected = marked(scalar_select_kernels(), values, threshold_bits, length % 9);
    for (const SelectKernels& kernels : vector_kernels()) {
      ASSERT_EQ(marked(kernels, values, threshold_bits, length % 9), expected) << length;
    }
  }
}

RC_GTEST_PROP(SelectKernels, VectorKernelsEqualTheReferenceForAnyBits, ()) {
  Floats values;
  for (const auto bits : *rc::gen::container<std::vector<std::uint32_t>>(
           *rc::gen::inRange<std::size_t>(0, kLengthMax), rc::gen::arbitrary<std::uint32_t>())) {
    values.push_back(std::bit_cast<float>(bits));
  }
  const auto threshold_bits = *rc::gen::inRange<std::uint32_t>(1, 0x7F800000);
  const Marked expected = marked(scalar_select_kernels(), values, threshold_bits, 1);
  for (const SelectKernels& kernels : vector_kernels()) {
    RC_ASSERT(marked(kernels, values, threshold_bits, 1) == expected);
  }
}

TEST(ListPositions, ListsTheSetBits) {
  const std::vector<std::uint64_t> words = {0b1001, 0, std::uint64_t{1} << 63};
  std::vector<std::uint16_t> places(3 * 64 + kPositionsSlack);
  ASSERT_EQ(scalar_list_positions()(words, places.data()), 3U);
  places.resize(3);
  EXPECT_EQ(places, (std::vector<std::uint16_t>{0, 3, 191}));
}

RC_GTEST_PROP(ListPositions, VectorKernelEqualsTheReferenceForAnyBits, ()) {
  if (avx512_list_positions() == nullptr) return;
  const auto count = *rc::gen::inRange<std::size_t>(0, 65);
  auto words = *rc::gen::container<std::vector<std::uint64_t>>(
      count, rc::gen::element<std::uint64_t>(0, 1, ~std::uint64_t{0}, 0x8000000080000001,
                                             0x0123456789ABCDEF));
  std::vector<std::uint16_t> expected(64 * count + kPositionsSlack);
  std::vector<std::uint16_t> places(64 * count + kPositionsSlack + 1, 777);
  const std::size_t set = scalar_list_positions()(words, expected.data());
  RC_ASSERT(avx512_list_positions()(words, places.data()) == set);
  RC_ASSERT(places.back() == 777);
  RC_ASSERT(std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(set),
                       places.begin()));
}

TEST(AddKernels, EqualTheReferenceForAllLengths) {
  for (std::size_t length = 0; length <= kLengthMax; ++length) {
    const Floats values = normal_slice(length);
    Floats sum(length, 0.1F);
    Floats expected = sum;
    best_add_kernels().add(values, sum);
    scalar_add_kernels().add(values, expected);
    ASSERT_EQ(sum, expected);
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(sum[i], 0.1F + values[i]);
    best_add_kernels().subtract_sent(values, sum);
    scalar_add_kernels().subtract_sent(values, expected);
    ASSERT_EQ(sum, expected);
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(sum[i], (0.1F + values[i]) - values[i]);
  }
}

TEST(AddKernels, LeaveNothingThatIsNotFiniteToSend) {
  for (const AddKernels& kernels : {scalar_add_kernels(), best_add_kernels()}) {
    Floats rest(20, 1.0F);
    Floats sent(20, 0.25F);
    sent[3] = NAN;
    sent[9] = INFINITY;
    rest[15] = -INFINITY;
    rest[17] = sent[17] = INFINITY;
    kernels.subtract_sent(sent, rest);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      EXPECT_EQ(rest[i], i == 3 || i == 9 || i == 15 || i == 17 ? 0.0F : 0.75F) << i;
    }
  }
}

}  // namespace
}  // namespace motley
