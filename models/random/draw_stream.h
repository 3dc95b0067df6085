// The random words of a package layer's draws, as a function of their position. They are the same
// in every plan, for every micro-batch size, in a recomputation and after a resume.
#pragma once

#include <cstdint>
#include <span>

#include "models/random/philox_tile.h"

namespace motley {

// One stream of words: (seed, step, layer, index) -> word 0, 1, ….
//
// The stream consists of tiles (philox_tile.h): word i of tile t is word 64 t + i of the stream.
// The counter of block b is (lower half of b, step, upper half of b, layer and index). The key
// differs from that of dropout masks.
class DrawStream {
 public:
  // REQUIRES: 0 <= step < 2^32, 0 <= index <= 255.
  DrawStream(std::int64_t seed, std::int64_t step, int layer, int index);

  // Fills `words` with words first, first + 1, ….
  void words(std::uint64_t first, std::span<std::uint32_t> words) const;

  // The counter of a tile's first block, for generators on other devices (tensor_draws.h). The
  // upper half of the block number is the same in each aligned group of 2^28 tiles.
  [[nodiscard]] PhiloxCounter first_of(std::uint64_t tile) const;

 private:
  PhiloxCounter counter_;  // of block 0
};

}  // namespace motley
