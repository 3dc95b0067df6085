// Random numbers of package layers: their values for given words, and the arguments of their nodes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "base/philox.h"
#include "models/numbers/random_numbers.h"
#include "models/package/draws.h"

namespace motley {
namespace {

constexpr std::uint32_t kLastWord = 0xFFFFFFFF;

struct Golden {
  std::uint32_t word;
  float normal;
  float exponential;
};

// tests/python/random_numbers_test.py has the same values.
constexpr std::array<Golden, 12> kGolden = {{
    {0, -0x1.95a11ap+2F, 0x1.6dfb52p+4F},
    {1, -0x1.8aa6c8p+2F, 0x1.5c6766p+4F},
    {0x12345678, -0x1.77b264p+0F, 0x1.525e98p+1F},
    {0x13333332, -0x1.708522p+0F, 0x1.4b8dep+1F},
    {0x13333333, -0x1.708522p+0F, 0x1.4b8dep+1F},
    {0x13333334, -0x1.708522p+0F, 0x1.4b8dep+1F},
    {0x7FFFFFFF, -0x1.40d932p-32F, 0x1.62e43p-1F},
    {0x80000000, 0x1.40d932p-32F, 0x1.62e43p-1F},
    {0xDEADBEEF, 0x1.202934p+0F, 0x1.1d96acp-3F},
    {0xECCCCCCC, 0x1.708522p+0F, 0x1.3f549ap-4F},
    {0xECCCCCCD, 0x1.708522p+0F, 0x1.3f549ap-4F},
    {kLastWord, 0x1.95a11ap+2F, 0x1p-33F},
}};

double unit_in_last_place(float value) {
  return std::nextafter(value, std::numeric_limits<float>::infinity()) - value;
}

// Words of all magnitudes from both ends of the range.
std::vector<std::uint32_t> some_words() {
  std::vector<std::uint32_t> words;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const PhiloxBlock block = philox4x32(5, 0, i);
    const std::uint32_t word = block[0] >> (block[1] % 32);
    words.insert(words.end(), {word, ~word});
  }
  return words;
}

TEST(DrawnNumbers, AreTheSameAsInPython) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(normal_number(golden.word), golden.normal) << golden.word;
    EXPECT_EQ(exponential_number(golden.word), golden.exponential) << golden.word;
  }
}

// The error of a number is its probability minus that of the word, divided by the density.
TEST(DrawnNumbers, AreTheQuantilesRoundedOnce) {
  constexpr double kMost = 0.5 + 1e-5;
  for (const std::uint32_t word : some_words()) {
    const float size = std::abs(normal_number(word));
    const double tail = to_open_unit(std::min(word, ~word));
    const double density = std::exp(-0.5 * size * size) / std::sqrt(2 * M_PI);
    const double error = (0.5 * std::erfc(size / std::sqrt(2.0)) - tail) / density;
    // Near 0 the rounding of the probability exceeds an ulp of the number.
    if (size > 1e-3F) {
      EXPECT_LE(std::abs(error), kMost * unit_in_last_place(size) + 1e-15) << word;
    }
    const double waiting = word < ~word ? -std::log(to_open_unit(word)) : -std::log1p(-tail);
    const float found = exponential_number(word);
    EXPECT_LE(std::abs(found - waiting), kMost * unit_in_last_place(found)) << word;
  }
}

TEST(DrawnNumbers, RiseWithTheWordAndAreSymmetric) {
  EXPECT_TRUE(rc::check([]() {
    const auto word = *rc::gen::inRange<std::uint32_t>(0, kLastWord);
    RC_ASSERT(normal_number(word) <= normal_number(word + 1));
    RC_ASSERT(normal_number(word) == -normal_number(~word));
    RC_ASSERT(normal_number(word) != 0.0F);
    RC_ASSERT(exponential_number(word) >= exponential_number(word + 1));
    RC_ASSERT(uniform_number(word) <= uniform_number(word + 1));
  }));
}

TEST(DrawnNumbers, HaveTheseEnds) {
  EXPECT_EQ(uniform_number(0), 0.0F);
  EXPECT_EQ(uniform_number(kLastWord), 1.0F - 0x1p-24F);
  EXPECT_NEAR(normal_number(kLastWord), 6.33796F, 1e-5F);
  EXPECT_NEAR(exponential_number(0), 22.87386F, 1e-5F);
  EXPECT_GT(exponential_number(kLastWord), 0.0F);
}

TEST(DrawnNumbers, TakeEachIntegerEquallyOften) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  EXPECT_EQ(integer_number(0, -5, 11), -5);
  EXPECT_EQ(integer_number(kAll, -5, 11), 5);
  EXPECT_EQ(integer_number(0x123456789ABCDEF0, 0, std::uint64_t{1} << 32), 0x12345678);
  EXPECT_EQ(integer_number(kAll, 7, 1), 7);
  EXPECT_TRUE(rc::check([]() {
    // The first 64 bits that give k are the smallest at or above 2^64 k / count.
    const auto count = *rc::gen::inRange<std::uint64_t>(2, (std::uint64_t{1} << 32) + 1);
    const auto k = *rc::gen::inRange<std::uint64_t>(1, count);
    std::uint64_t low = 0;
    std::uint64_t high = kAll;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (integer_number(middle, 0, count) >= static_cast<std::int64_t>(k)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const auto exact = static_cast<long double>(k) * 0x1p64L / static_cast<long double>(count);
    RC_ASSERT(std::abs(static_cast<long double>(low) - exact) < 2);
  }));
}

Node node_of(std::string_view operation, std::vector<Argument> args) {
  Node node;
  node.operation = operation;
  node.args = std::move(args);
  node.results = 1;
  return node;
}

TEST(DrawnNumbers, SayTheirSizesAndTheBatchAmongThem) {
  const std::vector<ListItem> sizes = {std::int64_t{4}, BatchInteger{1, 2}};
  const Node node =
      node_of("motley::integers", {sizes, std::int64_t{-3}, std::int64_t{5}, std::int64_t{255}});
  ASSERT_EQ(draw_fault(node), "");
  const DrawnNumbers drawn = draw_of(node);
  EXPECT_EQ(drawn.kind, DrawKind::kIntegers);
  EXPECT_EQ(drawn.low, -3);
  EXPECT_EQ(drawn.count, 8U);
  EXPECT_EQ(drawn.index, 255);
  EXPECT_EQ(drawn.batch_dim(), 1U);
  EXPECT_EQ(drawn.sizes_of(3), (std::vector<std::int64_t>{4, 7}));
  const Node shared = node_of("motley::normal", {std::vector<ListItem>{}, std::int64_t{0}});
  ASSERT_EQ(draw_fault(shared), "");
  EXPECT_EQ(draw_of(shared).batch_dim(), std::nullopt);
  EXPECT_EQ(draw_of(shared).sizes_of(3), std::vector<std::int64_t>{});
}

TEST(DrawnNumbers, RefuseNegativeAndBoundlessSizes) {
  constexpr std::int64_t kMany = std::int64_t{1} << 38;
  for (const BatchInteger& size : {BatchInteger{-4, 1}, BatchInteger{0, kMany},
                                   BatchInteger{0, std::numeric_limits<std::int64_t>::max()}}) {
    const Node node =
        node_of("motley::uniform", {std::vector<ListItem>{size, std::int64_t{5}}, std::int64_t{0}});
    ASSERT_EQ(draw_fault(node), "");
    EXPECT_EQ(draw_of(node).sizes_of(3), std::nullopt);
  }
}

TEST(DrawnNumbers, RefuseWhatIsNone) {
  const std::vector<ListItem> sizes = {std::int64_t{4}};
  const std::int64_t zero = 0;
  const std::vector<std::vector<Argument>> wrong = {
      {sizes},
      {sizes, std::int64_t{256}},
      {sizes, std::int64_t{-1}},
      {sizes, 0.5},
      {zero, zero},
      {std::vector<ListItem>{std::int64_t{-4}}, zero},
      {std::vector<ListItem>{4.0}, zero},
      {std::vector<ListItem>(9, std::int64_t{1}), zero},
      {sizes, zero, zero}};
  for (std::size_t k = 0; k < wrong.size(); ++k) {
    EXPECT_NE(draw_fault(node_of("motley::normal", wrong[k])), "") << k;
  }
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::pair<std::int64_t, std::int64_t>> limits = {
      {0, 0}, {1, 0}, {0, (std::int64_t{1} << 32) + 1}, {kLeast, kMost}, {kMost, kLeast}};
  for (const auto& [low, high] : limits) {
    EXPECT_NE(draw_fault(node_of("motley::integers", {sizes, low, high, zero})), "")
        << low << " " << high;
  }
  EXPECT_EQ(draw_fault(node_of("motley::integers", {sizes, kMost - 1, kMost, zero})), "");
}

}  // namespace
}  // namespace motley
