#include "data/order/permutation.h"

#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace motley {
namespace {

std::vector<std::uint64_t> values(std::uint64_t size, std::uint64_t key, std::uint64_t stream) {
  const Permutation permutation(size, key, stream);
  std::vector<std::uint64_t> result(size);
  for (std::uint64_t i = 0; i < size; ++i) result[i] = permutation(i);
  return result;
}

RC_GTEST_PROP(Permutation, HitsEachNumberOnce, ()) {
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 3000);
  std::vector<int> hits(size, 0);
  for (const std::uint64_t value :
       values(size, *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>())) {
    RC_ASSERT(value < size);
    ++hits[value];
  }
  RC_ASSERT(hits == std::vector<int>(size, 1));
}

TEST(Permutation, HitsEachNumberOnceAroundPowersOfTwo) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 5U, 15U, 16U, 17U, 255U, 256U, 257U}) {
    std::vector<int> hits(size, 0);
    for (const std::uint64_t value : values(size, 7, 0)) ++hits.at(value);
    EXPECT_EQ(hits, std::vector<int>(size, 1)) << size;
  }
}

TEST(Permutation, DependsOnKeyAndStream) {
  EXPECT_EQ(values(100, 1, 0), values(100, 1, 0));
  EXPECT_NE(values(100, 1, 0), values(100, 2, 0));
  EXPECT_NE(values(100, 1, 0), values(100, 1, 1));
}

TEST(Permutation, StaysInsideALargeRange) {
  const std::uint64_t size = (std::uint64_t{1} << 40) + 1;
  const Permutation permutation(size, 3, 0);
  EXPECT_LT(permutation(size - 1), size);
  EXPECT_NE(permutation(0), permutation(1));
}

// Over all 24 permutations of four numbers, each number is first about equally often.
TEST(Permutation, FavoursNoNumber) {
  std::vector<int> first(4, 0);
  for (std::uint64_t stream = 0; stream < 4000; ++stream) ++first[Permutation(4, 9, stream)(0)];
  for (const int count : first) EXPECT_NEAR(count, 1000, 150);  // over 5 standard deviations
}

}  // namespace
}  // namespace motley
