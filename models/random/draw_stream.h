// The random words behind the numbers that a layer of a package draws, as a function of where they
// stand: the same in every plan, for every size of micro-batches, in a recomputation and after a
// resume.
#pragma once

#include <cstdint>
#include <span>

#include "models/random/philox_tile.h"

namespace motley {

// One stream of words: (seed, step, layer, index) -> word 0, 1, ….
//
// They come in tiles (philox_tile.h): word i of tile t is word 64 t + i of the stream. The counter
// of block b is (lower half of b, step, upper half of b, layer and index), under a key that no
// dropout mask has.
class DrawStream {
 public:
  // REQUIRES: step not negative and below 2^32, index from 0 to 255.
  DrawStream(std::int64_t seed, std::int64_t step, int layer, int index);

  // Fills `words` with those from number `first` on.
  void words(std::uint64_t first, std::span<std::uint32_t> words) const;

  // Of the first block of a tile, for those who draw elsewhere (tensor_draws.h). The upper half is
  // the same for the tiles of an aligned group of 2^28.
  [[nodiscard]] PhiloxCounter first_of(std::uint64_t tile) const;

 private:
  PhiloxCounter counter_;  // of block 0
};

}  // namespace motley
