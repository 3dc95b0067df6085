#include "models/device/large_blocks.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

TEST(LargeBlocks, ServeTheNextOneOfTheirSize) {
  LargeBlocks blocks;
  const LargeBlocks::Block first = blocks.take(20 * kMib);
  ASSERT_NE(first.memory, nullptr);
  std::memset(first.memory, 1, 20 * kMib);
  blocks.give_back(first);
  const LargeBlocks::Block again = blocks.take(20 * kMib - 5);
  EXPECT_EQ(again.memory, first.memory);
  const LargeBlocks::Block beside = blocks.take(20 * kMib);
  EXPECT_NE(beside.memory, first.memory);
  blocks.give_back(again);
  blocks.give_back(beside);
}

// The sequence of a head: its logits, then the gradient of its matrix.
TEST(LargeBlocks, AreNeverMoreThanWereInUseAtOnce) {
  LargeBlocks blocks;
  const LargeBlocks::Block logits = blocks.take(60 * kMib);
  const LargeBlocks::Block scores = blocks.take(60 * kMib);
  blocks.give_back(logits);
  blocks.give_back(scores);
  EXPECT_EQ(blocks.mapped_bytes(), 120 * kMib);
  const LargeBlocks::Block gradient = blocks.take(100 * kMib);
  EXPECT_EQ(blocks.mapped_bytes(), 100 * kMib);
  blocks.give_back(gradient);
  blocks.release();
  EXPECT_EQ(blocks.mapped_bytes(), 0U);
}

TEST(LargeBlocks, OfARepeatedOrderAreMappedOnce) {
  LargeBlocks blocks;
  std::vector<void*> first;
  for (int step = 0; step < 4; ++step) {
    const LargeBlocks::Block kept = blocks.take(64 * kMib);
    const LargeBlocks::Block passing = blocks.take(32 * kMib);
    const LargeBlocks::Block other = blocks.take(48 * kMib);
    const std::vector<void*> now = {kept.memory, passing.memory, other.memory};
    blocks.give_back(passing);
    blocks.give_back(other);
    blocks.give_back(kept);
    if (step == 0) first = now;
    EXPECT_EQ(now, first) << step;
  }
}

TEST(LargeBlocks, OfAnyOrderAreBoundedByTheMostInUse) {
  std::mt19937 random(7);
  LargeBlocks blocks;
  std::vector<LargeBlocks::Block> used;
  std::size_t used_bytes = 0;
  std::size_t most = 0;
  for (int i = 0; i < 2000; ++i) {
    if (used.empty() || random() % 2 == 0) {
      const std::size_t bytes = (1 + random() % 64) * kMib;
      used.push_back(blocks.take(bytes));
      ASSERT_GE(used.back().bytes, bytes);
      ASSERT_LE(used.back().bytes, bytes + bytes / 31);
      used_bytes += used.back().bytes;
      most = std::max(most, used_bytes);
    } else {
      std::swap(used[random() % used.size()], used.back());
      used_bytes -= used.back().bytes;
      blocks.give_back(used.back());
      used.pop_back();
    }
    ASSERT_LE(blocks.mapped_bytes(), most);
  }
  for (const LargeBlocks::Block& block : used) blocks.give_back(block);
}

TEST(LargeBlocks, ThatTheSystemLacksAreNone) {
  LargeBlocks blocks;
  blocks.give_back(blocks.take(20 * kMib));
  EXPECT_EQ(blocks.take(std::size_t{1} << 62).memory, nullptr);
  EXPECT_EQ(blocks.mapped_bytes(), 0U);
}

}  // namespace
}  // namespace motley
