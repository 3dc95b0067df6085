#include "partitioner/period_search/front_bound.h"

#include <algorithm>
#include <limits>

namespace motley {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

bool has_position(SlotMask mask, std::size_t position) {
  return (mask >> position & 1U) != 0;
}

}  // namespace

FrontBound::FrontBound(const StepEstimate& estimate,
                       const std::vector<int>& slots,
                       const std::vector<std::vector<int>>& members)
    : estimate_(estimate), slots_(slots), members_(members), bounds_(members.size()) {
  find_least_transfers();
}

// The least over all codecs and boundaries between any two slots.
void FrontBound::find_least_transfers() {
  const int boundaries = estimate_.table().layer_count() - 1;
  const int codecs = static_cast<int>(estimate_.space().codecs.size());
  least_transfers_.assign(slots_.size() * slots_.size(), {kNoBound, kNoBound, false});
  for (std::size_t a = 0; a < slots_.size(); ++a) {
    for (std::size_t b = 0; b < slots_.size(); ++b) {
      if (a == b) continue;
      StageTransfer& least = least_transfers_[a * slots_.size() + b];
      for (int boundary = 0; boundary < boundaries; ++boundary) {
        for (int codec = 0; codec < codecs; ++codec) {
          const StageTransfer stage_transfer =
              estimate_.stage_transfer({&slots_[a], 1}, {&slots_[b], 1}, boundary, codec);
          least.transfer_s = std::min(least.transfer_s, stage_transfer.transfer_s);
          least.load_s = std::min(least.load_s, stage_transfer.load_s);
        }
      }
    }
  }
}

void FrontBound::set_tail(SlotMask front, SlotMask last, SlotMask free) {
  front_ = front;
  last_ = last;
  bound_ = nullptr;
  least_hop_s_ = least_load_s_ = tied_s_ = kNoBound;
  if (free == 0) return;
  if (!bounds_[free]) bounds_[free].emplace(estimate_, members_[free]);
  bound_ = &*bounds_[free];
  for (std::size_t x = 0; x < slots_.size(); ++x) {
    if (!has_position(free, x)) continue;
    double transfer_path_s = 0;
    double load_s = 0;
    for (std::size_t a = 0; a < slots_.size(); ++a) {
      if (!has_position(front, a)) continue;
      const StageTransfer& stage_transfer = least_transfers_[a * slots_.size() + x];
      transfer_path_s = std::max(transfer_path_s, stage_transfer.transfer_s);
      load_s = std::max(load_s, stage_transfer.load_s);
    }
    least_hop_s_ = std::min(least_hop_s_, transfer_path_s);
    least_load_s_ = std::min(least_load_s_, load_s);
    tied_s_ = std::min(tied_s_, tied_s(SlotMask{1} << x, last));
  }
}

double FrontBound::step_s(const Tail& tail, int first_layer) {
  if (first_layer == 0) return estimate_.step_s(tail) + tied_s(front_, last_);
  if (bound_ == nullptr) return kNoBound;
  Tail least = tail;
  least.period_s = std::max(least.period_s, least_load_s_);
  return bound_->step_s(least, first_layer, 2 * least_hop_s_) + tied_s_;
}

double FrontBound::tied_s(SlotMask first, SlotMask last) {
  const auto [known, added] = tied_.try_emplace(first | last, 0);
  if (added) known->second = estimate_.tied_s(members_[first], members_[last]);
  return known->second;
}

}  // namespace motley
