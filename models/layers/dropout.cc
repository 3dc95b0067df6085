#include "models/layers/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "models/random/philox_tile.h"

namespace motley {
namespace {

constexpr int kBlocks = DropoutStream::kBlocks;

// Separates these draws from others with the same seed (initial values, data order).
constexpr std::uint64_t kDomain = 0x64726F706F757421;  // "dropout!"

MOTLEY_CLONES void apply_mask(PhiloxCounter counter,
                              std::uint32_t threshold,
                              float scale,
                              const float* x,
                              float* y,
                              std::int64_t count) {
  std::array<PhiloxColumn, 4> words;
  for (; count > 0; count -= DropoutStream::kTile) {
    philox_tile(counter, words);
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
    counter.words[0] += kBlocks;
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
  const PhiloxCounter counter{
      draw_.key,
      {static_cast<std::uint32_t>(first_tile * kBlocks), draw_.step, draw_.micro, draw_.place}};
  apply_mask(counter, draw_.threshold, draw_.scale, x, y, count);
}

}  // namespace motley
