#include "checkpoint/convert/difference.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "tests/checkpoint/convert_fixture.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::Allowance;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using testing::OwnedTensor;
using testing::TempFolder;
using testing::TestRun;
using testing::views;

Result<Difference> difference(const std::filesystem::path& a,
                              const std::filesystem::path& b,
                              bool with_optimizer = false) {
  MOTLEY_ASSIGN(const CheckpointReader reader_a, CheckpointReader::open(a));
  MOTLEY_ASSIGN(const CheckpointReader reader_b, CheckpointReader::open(b));
  Allowance watch;
  return difference_of(reader_a, reader_b, with_optimizer, watch);
}

class Pair {
 public:
  Result<Difference> of(const std::vector<OwnedTensor>& a, const std::vector<OwnedTensor>& b) {
    MOTLEY_TRY(write_safetensors(folder_.path() / "a.safetensors", views(a), {}));
    MOTLEY_TRY(write_safetensors(folder_.path() / "b.safetensors", views(b), {}));
    return difference(folder_.path() / "a.safetensors", folder_.path() / "b.safetensors");
  }

 private:
  TempFolder folder_;
};

bool near(double a, double b) {
  return a == b || std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

// Compared with sums in plain order.
TEST(Difference, IsThatOfAPlainLoop) {
  Pair pair;
  EXPECT_TRUE(rc::check([&] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 70);
    const auto values = rc::gen::container<std::vector<float>>(
        count, rc::gen::map(rc::gen::inRange(-50, 50),
                            [](int value) { return static_cast<float>(value) / 7; }));
    const std::vector<float> a = *values;
    std::vector<float> b = *values;
    if (*rc::gen::arbitrary<bool>()) b = a;
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(count)};
    const auto found = pair.of({{"x", shape, a}}, {{"x", shape, b}});
    RC_ASSERT(found.ok());
    double largest = 0;
    double square = 0;
    double square_a = 0;
    std::uint64_t differing = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double d = static_cast<double>(a[i]) - b[i];
      largest = std::max(largest, std::fabs(d));
      square += d * d;
      square_a += static_cast<double>(a[i]) * a[i];
      differing += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
    }
    const TensorDifference& one = found->tensors.at(0);
    RC_ASSERT(one.largest == largest);
    RC_ASSERT(one.differing == differing);
    RC_ASSERT(one.values == count);
    RC_ASSERT(near(one.relative, square == 0 ? 0 : std::sqrt(square / square_a)));
    RC_ASSERT(is_equal_to_the_bit(*found) == (differing == 0));
  }));
}

TEST(Difference, OfWhatIsNotFiniteIsInfinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Pair pair;
  const auto of = [&](std::vector<float> a, std::vector<float> b) {
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(a.size())};
    return pair.of({{"x", shape, std::move(a)}}, {{"x", shape, std::move(b)}})->tensors.at(0);
  };
  EXPECT_EQ(of({kNan, kInfinity, 1}, {kNan, kInfinity, 1}).largest, 0) << "the same bits";
  for (const auto& [a, b] : {std::pair(kNan, 1.0F), {1.0F, kNan}, {kInfinity, -kInfinity}}) {
    for (const std::size_t location : {0, 3, 8}) {
      std::vector<float> many_a(9, 2);
      std::vector<float> many_b(9, 3);
      many_a[location] = a;
      many_b[location] = b;
      EXPECT_EQ(of(many_a, many_b).largest, kInfinity) << a << ' ' << b << ' ' << location;
      EXPECT_EQ(of(many_a, many_b).relative, kInfinity);
    }
  }
  EXPECT_EQ(of({0, 0}, {0, 1}).relative, kInfinity);
  EXPECT_EQ(of({0, 1}, {-0.0F, 1}).relative, 0);
  EXPECT_EQ(of({0, 1}, {-0.0F, 1}).differing, 1U);
}

TEST(Difference, ListsWhatIsNotCompared) {
  Pair pair;
  const auto found = pair.of(
      {{"a", {1}, {1}}, {"b", {2}, {1, 2}}, {"transformer.c", {1}, {5}}, {"model.d", {1}, {1}}},
      {{"b", {1, 2}, {1, 2}}, {"c", {1}, {5}}, {"d", {1}, {1}}, {"e", {1}, {1}}});
  ASSERT_OK(found);
  EXPECT_THAT(found->tensors, ElementsAre(Field(&TensorDifference::name, "model.d"),
                                          Field(&TensorDifference::name, "transformer.c")));
  ASSERT_EQ(found->mismatched.size(), 3U);
  EXPECT_EQ(found->mismatched[0].in_a + "|" + found->mismatched[0].in_b, "F32 [1]|");
  EXPECT_EQ(found->mismatched[1].in_a + "|" + found->mismatched[1].in_b, "F32 [2]|F32 [1, 2]");
  EXPECT_EQ(found->mismatched[2].in_a + "|" + found->mismatched[2].in_b, "|F32 [1]");
  EXPECT_FALSE(is_equal_to_the_bit(*found));
}

TEST(Difference, PutsTheLargestFirst) {
  Pair pair;
  const auto found = pair.of({{"a", {1}, {100}}, {"b", {1}, {1}}, {"c", {1}, {10}}},
                             {{"a", {1}, {101}}, {"b", {1}, {2}}, {"c", {1}, {11}}});
  EXPECT_THAT(found->tensors,
              ElementsAre(Field(&TensorDifference::name, "b"), Field(&TensorDifference::name, "c"),
                          Field(&TensorDifference::name, "a")));
}

TEST(Difference, OfCheckpointsLeavesTheOptimizerOutUnlessAsked) {
  const TestRun run;
  const auto a = run.save(10, 2, 1);
  const auto b = run.save(20, 3, 2);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(difference(*a, *b)->tensors.size(), 4U);
  EXPECT_THAT(difference(*a, *b)->mismatched, IsEmpty());
  EXPECT_EQ(difference(*a, *b, /*with_optimizer=*/true)->tensors.size(), 8U);
  EXPECT_TRUE(is_equal_to_the_bit(*difference(*a, *a, /*with_optimizer=*/true)));
}

TEST(Difference, OfADamagedTensorIsNone) {
  const TestRun run;
  const auto a = run.save(10, 1, 1);
  const auto b = run.save(20, 1, 1);
  ASSERT_OK(b);
  const auto file = *b / "model-00001-of-00001.safetensors";
  std::string bytes = testing::read_bytes(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  testing::write_bytes(file, bytes);
  EXPECT_CORRUPT(difference(*a, *b), file.string());
}

}  // namespace
}  // namespace motley
