// BoundaryPrices: the cost of each codec of a search space for each slot and boundary, looked up by
// name once; the searches query it millions of times.
#pragma once

#include <cstddef>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

struct BoundaryPrice {
  // The cost of an activation message or a gradient message.
  struct Message {
    double bytes = 0;   // CostModel::frame_bytes
    double send_s = 0;  // message and codec, on the compute stream or overlapped
    double receive_s = 0;
    double overlapped_send_s = 0;     // the slot's part of CostModel::overlapped_s as the sender
    double overlapped_receive_s = 0;  // as the receiver
  };

  double before_s = 0;  // CostModel::boundary_before_s
  double behind_s = 0;  // CostModel::boundary_behind_s
  Message activation;
  Message gradient;
};

class BoundaryPrices {
 public:
  BoundaryPrices(const StageTable& table, const SearchSpace& space);

  // boundary: the layer before it. codec: index in SearchSpace::codecs.
  [[nodiscard]] const BoundaryPrice& of(int slot, int boundary, int codec) const {
    const std::size_t size = size_of_[static_cast<std::size_t>(boundary)];
    return prices_[(size * slots_ + static_cast<std::size_t>(slot)) * codecs_ +
                   static_cast<std::size_t>(codec)];
  }

 private:
  std::size_t slots_;
  std::size_t codecs_;
  std::vector<std::size_t> size_of_;   // [boundary] index of its size; few differ
  std::vector<BoundaryPrice> prices_;  // [size x slot x codec]
};

}  // namespace motley
