#include "models/random/draw_stream.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace motley {
namespace {

// Separates this key from the other uses of the seed (dropout masks, initial values, data order).
constexpr std::uint64_t kDrawDomain = 0x6E756D6265727321;  // "numbers!"

constexpr auto kWordsInATile = static_cast<std::size_t>(kTileWords);

PhiloxCounter counter_of_tile(const PhiloxCounter& first, std::uint64_t tile) {
  const std::uint64_t block = tile * static_cast<std::uint64_t>(kTileBlocks);
  PhiloxCounter counter = first;
  counter.words[0] = static_cast<std::uint32_t>(block);
  counter.words[2] = static_cast<std::uint32_t>(block >> 32);
  return counter;
}

// Writes whole tiles. The lower half of the block number does not wrap around within a tile.
MOTLEY_CLONES void write_tiles(const PhiloxCounter& first,
                               std::uint64_t tile,
                               std::size_t tiles,
                               std::uint32_t* out) {
  std::array<PhiloxColumn, 4> words;
  for (std::size_t t = 0; t < tiles; ++t) {
    philox_tile(counter_of_tile(first, tile + t), words);
    for (int w = 0; w < 4; ++w) {
      for (int l = 0; l < kTileBlocks; ++l) {
        out[w * kTileBlocks + l] = static_cast<std::uint32_t>(words[w][l]);
      }
    }
    out += kTileWords;
  }
}

}  // namespace

DrawStream::DrawStream(std::int64_t seed, std::int64_t step, int layer, int index)
    : counter_{static_cast<std::uint64_t>(seed) ^ kDrawDomain,
               {0, static_cast<std::uint32_t>(step), 0,
                static_cast<std::uint32_t>(layer) << 8 | static_cast<std::uint32_t>(index)}} {
  MOTLEY_CHECK(step >= 0 && step <= 0xFFFFFFFF, "step = {}", step);
  MOTLEY_CHECK(index >= 0 && index <= 0xFF, "index = {}", index);
}

void DrawStream::words(std::uint64_t first, std::span<std::uint32_t> words) const {
  while (!words.empty()) {
    const std::uint64_t tile = first / kWordsInATile;
    const std::size_t skipped = first % kWordsInATile;
    std::size_t count = words.size() / kWordsInATile * kWordsInATile;
    if (skipped == 0 && count > 0) {
      write_tiles(counter_, tile, count / kWordsInATile, words.data());
    } else {  // part of a tile
      std::array<std::uint32_t, kWordsInATile> whole;
      write_tiles(counter_, tile, 1, whole.data());
      count = std::min(words.size(), kWordsInATile - skipped);
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(skipped), count, words.begin());
    }
    first += count;
    words = words.subspan(count);
  }
}

PhiloxCounter DrawStream::first_of(std::uint64_t tile) const {
  return counter_of_tile(counter_, tile);
}

}  // namespace motley
