// BoundaryPrices: what each codec of a search space costs each slot at each boundary, looked up
// once by its name; the searches ask millions of times.
#pragma once

#include <cstddef>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

struct BoundaryPrice {
  // Of an activation, or of a gradient.
  struct Message {
    double bytes = 0;   // CostModel::frame_bytes
    double send_s = 0;  // with its codec, wherever that goes on
    double receive_s = 0;
    double beside_send_s = 0;     // of CostModel::beside_s, where the slot sends
    double beside_receive_s = 0;  // where it receives
  };

  double before_s = 0;  // CostModel::crossing_before_s
  double behind_s = 0;  // CostModel::crossing_behind_s
  Message activation;
  Message gradient;
};

class BoundaryPrices {
 public:
  BoundaryPrices(const StageTable& table, const SearchSpace& space);

  // boundary: the layer before it. codec: of SearchSpace::codecs.
  [[nodiscard]] const BoundaryPrice& of(int slot, int boundary, int codec) const {
    const std::size_t size = size_of_[static_cast<std::size_t>(boundary)];
    return prices_[(size * slots_ + static_cast<std::size_t>(slot)) * codecs_ +
                   static_cast<std::size_t>(codec)];
  }

 private:
  std::size_t slots_;
  std::size_t codecs_;
  std::vector<std::size_t> size_of_;   // [boundary] number of its size; few differ
  std::vector<BoundaryPrice> prices_;  // [size x slot x codec]
};

}  // namespace motley
