#include "models/layers/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/philox.h"
#include "models/kernels/simd.h"

namespace motley {
namespace {

constexpr int kBlocks = DropoutStream::kBlocks;  // computed together

// Separates these draws from others with the same seed (initial values, data order).
constexpr std::uint64_t kDomain = 0x64726F706F757421;  // "dropout!"

// One word of each block. 64 bits wide, so that the products vectorise.
using Column = std::array<std::uint64_t, kBlocks>;

struct Counter {
  std::uint32_t first_block;
  std::uint32_t step;
  std::uint32_t micro;
  std::uint32_t place;
};

// philox4x32 of base/philox.h for sixteen consecutive blocks, word by word.
MOTLEY_INLINE void philox_tile(std::uint64_t key,
                               const Counter& counter,
                               std::array<Column, 4>& words) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  for (int l = 0; l < kBlocks; ++l) {
    words[0][l] = (counter.first_block + static_cast<std::uint32_t>(l)) & kLow;
    words[1][l] = counter.step;
    words[2][l] = counter.micro;
    words[3][l] = counter.place;
  }
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
// If the compiler unrolls the loop early, it does not vectorise it.
#pragma GCC unroll 1
    for (int l = 0; l < kBlocks; ++l) {
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

MOTLEY_CLONES void apply_mask(std::uint64_t key,
                              Counter counter,
                              std::uint32_t threshold,
                              float scale,
                              const float* x,
                              float* y,
                              std::int64_t count) {
  std::array<Column, 4> words;
  for (; count > 0; count -= DropoutStream::kTile) {
    philox_tile(key, counter, words);
    if (count >= DropoutStream::kTile) {
      for (int w = 0; w < 4; ++w) {
        for (int l = 0; l < kBlocks; ++l) {
          const float factor = words[w][l] >= threshold ? scale : 0.0F;
          y[w * kBlocks + l] = x[w * kBlocks + l] * factor;
        }
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        y[i] = words[i / kBlocks][i % kBlocks] >= threshold ? x[i] * scale : x[i] * 0.0F;
      }
    }
    x += DropoutStream::kTile;
    y += DropoutStream::kTile;
    counter.first_block += kBlocks;
  }
}

std::uint32_t to_word(std::int64_t value, const char* name) {
  MOTLEY_CHECK(value >= 0 && value <= 0xFFFFFFFF, "{} = {}", name, value);
  return static_cast<std::uint32_t>(value);
}

}  // namespace

DropoutStream::DropoutStream(double p, const MicroContext& micro, int layer, DropoutSite site)
    : draw_{.key = static_cast<std::uint64_t>(micro.seed) ^ kDomain,
            .step = to_word(micro.step, "step"),
            .micro = to_word(micro.micro, "micro"),
            .place = static_cast<std::uint32_t>(layer) << 8 | static_cast<std::uint32_t>(site),
            .threshold =
                static_cast<std::uint32_t>(std::min(std::floor(p * 0x1.0p32), 0x1.0p32 - 1.0)),
            .scale = static_cast<float>(1.0 / (1.0 - p))} {
  MOTLEY_CHECK(p > 0.0 && p < 1.0, "p = {}", p);
}

void DropoutStream::apply(const float* x,
                          float* y,
                          std::int64_t count,
                          std::int64_t first_tile) const {
  MOTLEY_CHECK(first_tile + tiles(count) < kTilesMax, "tile {} + {} elements", first_tile, count);
  const Counter counter{static_cast<std::uint32_t>(first_tile * kBlocks), draw_.step, draw_.micro,
                        draw_.place};
  apply_mask(draw_.key, counter, draw_.threshold, draw_.scale, x, y, count);
}

}  // namespace motley
