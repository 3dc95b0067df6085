// Philox (base/philox.h) for sixteen consecutive blocks in parallel. A tile has their 64 words in
// this order: word 16 w + l is word w of block l. Private to models/random and models/layers.
#pragma once

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "models/kernels/simd.h"

namespace motley {

inline constexpr std::int64_t kTileBlocks = 16;
inline constexpr std::int64_t kTileWords = 4 * kTileBlocks;

// Key and counter of a block. Word 0 depends on the block; a stream sets the others.
struct PhiloxCounter {
  std::uint64_t key = 0;
  std::array<std::uint32_t, 4> words = {};  // [0]: lower half of the block number
};

// One word of each block, 64 bits wide so that the products vectorise.
using PhiloxColumn = std::array<std::uint64_t, kTileBlocks>;

// The words of the tile that begins with the block of `first`. REQUIRES: the block number is a
// multiple of kTileBlocks.
MOTLEY_INLINE void philox_tile(const PhiloxCounter& first, std::array<PhiloxColumn, 4>& words) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  for (int l = 0; l < kTileBlocks; ++l) {
    words[0][l] = (first.words[0] + static_cast<std::uint32_t>(l)) & kLow;
    words[1][l] = first.words[1];
    words[2][l] = first.words[2];
    words[3][l] = first.words[3];
  }
  auto key0 = static_cast<std::uint32_t>(first.key);
  auto key1 = static_cast<std::uint32_t>(first.key >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
// GCC does not vectorise the loop if it is unrolled early.
#pragma GCC unroll 1
    for (int l = 0; l < kTileBlocks; ++l) {
      const std::uint64_t product0 = std::uint64_t{Philox::kMul0} * words[0][l];
      const std::uint64_t product1 = std::uint64_t{Philox::kMul1} * words[2][l];
      words[0][l] = (product1 >> 32) ^ words[1][l] ^ key0;
      words[2][l] = (product0 >> 32) ^ words[3][l] ^ key1;
      words[1][l] = product1 & kLow;
      words[3][l] = product0 & kLow;
    }
    key0 += Philox::kWeyl0;
    key1 += Philox::kWeyl1;
  }
}

}  // namespace motley
