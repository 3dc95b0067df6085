#include "partitioner/cost/boundary_prices.h"

#include <map>
#include <string>

namespace motley {
namespace {

BoundaryPrice::Message message_price(const CostModel& cost,
                                     int slot,
                                     const BoundarySize& size,
                                     const std::string& codec) {
  BoundaryPrice::Message price{cost.frame_bytes(slot, size, codec),
                               cost.message_s(slot) + cost.encode_s(slot, size, codec),
                               cost.message_s(slot) + cost.decode_s(slot, size, codec)};
  if (cost.overlaps_codecs(slot)) {
    price.overlapped_send_s = price.send_s;
    price.overlapped_receive_s = price.receive_s;
  }
  return price;
}

}  // namespace

BoundaryPrices::BoundaryPrices(const StageTable& table, const SearchSpace& space)
    : slots_(table.cost().slots().size()), codecs_(space.codecs.size()) {
  const CostModel& cost = table.cost();
  std::map<BoundarySize, std::size_t> sizes;
  for (int l = 0; l + 1 < table.layer_count(); ++l) {
    const BoundarySize size = cost.boundary(l, table.shape().micro_batch);
    const auto [found, added] = sizes.try_emplace(size, sizes.size());
    size_of_.push_back(found->second);
    if (!added) continue;
    for (int slot = 0; slot < static_cast<int>(slots_); ++slot) {
      for (const std::string& codec : space.codecs) {
        prices_.push_back({cost.boundary_before_s(slot, size, codec),
                           cost.boundary_behind_s(slot, size, codec),
                           message_price(cost, slot, size, codec),
                           message_price(cost, slot, size.gradient(), codec)});
      }
    }
  }
}

}  // namespace motley
