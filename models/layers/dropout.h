// Dropout with masks that are a function of the element's position, never of history: the same
// element of the same micro-batch is dropped in every plan, in a recomputation and after a resume.
#pragma once

#include <cstdint>

#include "models/layers/layer.h"
#include "models/random/philox_tile.h"

namespace motley {

// The sites inside a layer; each has its own stream.
enum class DropoutSite : std::uint32_t { kOutput = 0, kProbabilities = 1 };

// One stream of masks: (seed, step, micro, layer, site) -> kept or dropped for each element.
//
// Elements come in tiles of 64. Element 16 w + l of tile t is kept iff word w of the Philox block
// 16 t + l is at least p * 2^32; kept elements are divided by 1 - p. In this order sixteen blocks
// can be computed together.
class DropoutStream {
 public:
  // REQUIRES: 0 < p < 1, step and micro not negative and below 2^32.
  DropoutStream(double p, const MicroContext& micro, int layer, DropoutSite site);

  static constexpr std::int64_t kTile = kTileWords;
  static constexpr std::int64_t kBlocks = kTileBlocks;  // Philox blocks per tile
  static constexpr std::int64_t kTilesMax = std::int64_t{1} << 28;

  // The parameters of the masks, for other implementations (tensor_dropout.h).
  struct Draw {
    std::uint64_t key = 0;
    std::uint32_t step = 0;  // with the two below: words 1 to 3 of a counter; word 0 is the block
    std::uint32_t micro = 0;
    std::uint32_t place = 0;  // layer and site
    std::uint32_t threshold = 0;
    float scale = 0;
  };

  [[nodiscard]] const Draw& draw() const { return draw_; }

  // The number of tiles of `count` elements.
  [[nodiscard]] static constexpr std::int64_t tiles(std::int64_t count) {
    return (count + kTile - 1) / kTile;
  }

  // y = x masked and scaled, for `count` elements from the start of tile `first_tile` on.
  // x and y may be the same. REQUIRES: fewer than kTilesMax tiles.
  void apply(const float* x, float* y, std::int64_t count, std::int64_t first_tile) const;

 private:
  Draw draw_;
};

}  // namespace motley
