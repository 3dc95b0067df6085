#include "partitioner/cost/boundary_prices.h"

#include <map>
#include <string>

namespace motley {

BoundaryPrices::BoundaryPrices(const StageTable& table, const SearchSpace& space)
    : slots_(table.cost().slots().size()), codecs_(space.codecs.size()) {
  const CostModel& cost = table.cost();
  std::map<double, std::size_t> sizes;
  for (int l = 0; l + 1 < table.layer_count(); ++l) {
    const double floats = cost.boundary_floats(l, table.shape().micro_batch);
    const auto [found, added] = sizes.try_emplace(floats, sizes.size());
    size_of_.push_back(found->second);
    if (!added) continue;
    for (int slot = 0; slot < static_cast<int>(slots_); ++slot) {
      for (const std::string& codec : space.codecs) {
        BoundaryPrice price{cost.crossing_s(slot, floats, codec),
                            cost.frame_bytes(slot, floats, codec),
                            cost.message_s(slot) + cost.encode_s(slot, floats, codec),
                            cost.message_s(slot) + cost.decode_s(slot, floats, codec)};
        if (cost.codecs_beside(slot)) {
          price.beside_send_s = price.send_s;
          price.beside_receive_s = price.receive_s;
        }
        prices_.push_back(price);
      }
    }
  }
}

}  // namespace motley
