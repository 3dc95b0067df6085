#include "pipeline/schedule/compute_order.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley {

ComputeOrder::ComputeOrder(const Schedule& schedule, bool training)
    : training_(training),
      shares_(schedule.ranks.size()),
      to_compute_(schedule.ranks.size(), 0),
      peak_in_flight_(schedule.owners.size(), 0),
      peak_queued_weights_(schedule.owners.size(), 0) {
  for (ChunkId chunk{0}; chunk.value < schedule.chunk_count(); ++chunk.value) {
    for (MicroId micro{0}; micro.value < schedule.micro_batches; ++micro.value) {
      const Rank rank = schedule.owner(chunk, micro);
      shares_[rank.index()][chunk].micros.push_back(micro);
      to_compute_[rank.index()] += training ? 3 : 1;
    }
  }
}

CheckResult ComputeOrder::check(Rank here, const Action& action) const {
  const Share& share = shares_[here.index()].at(action.chunk);
  if (action.kind == ActionKind::kForward) return check_order(share, share.forwards, action.micro);
  if (!training_) return breaks("a forward schedule has no backward");
  if (action.kind == ActionKind::kBackwardWeight) {
    return check_order(share, share.weights, action.micro);
  }
  CheckResult check_result = check_order(share, share.backwards, action.micro);
  if (!check_result.ran() || action.kind == ActionKind::kBackwardInput) return check_result;
  if (share.weights == share.backwards) return {};
  return breaks(fmt::format("the weight part of micro-batch {} is not done yet",
                            share.micros[share.weights].value));
}

CheckResult ComputeOrder::check_order(const Share& share, std::size_t done, MicroId micro) {
  if (done == share.micros.size()) return breaks("it has no further micro-batch of the chunk");
  if (share.micros[done] == micro) return {};
  return breaks(fmt::format("micro-batch {} is next", share.micros[done].value));
}

void ComputeOrder::pass(Rank here, const Action& action) {
  Share& share = shares_[here.index()].at(action.chunk);
  const auto count = [&](std::size_t& done) {
    ++done;
    --to_compute_[here.index()];
  };
  if (action.kind == ActionKind::kForward) {
    count(share.forwards);
    int& peak = peak_in_flight_[action.chunk.index()];
    if (training_) peak = std::max(peak, static_cast<int>(share.forwards - share.backwards));
    return;
  }
  if (action.kind != ActionKind::kBackwardWeight) count(share.backwards);
  if (action.kind != ActionKind::kBackwardInput) count(share.weights);
  int& peak = peak_queued_weights_[action.chunk.index()];
  peak = std::max(peak, static_cast<int>(share.backwards - share.weights));
}

std::optional<std::string> ComputeOrder::missing(Rank here) const {
  if (to_compute_[here.index()] == 0) return std::nullopt;
  for (const auto& [chunk, share] : shares_[here.index()]) {
    const auto lacks = [c = chunk, &micros = share.micros](std::size_t done, const char* what) {
      return fmt::format("the {} of micro-batch {} in chunk {}", what, micros[done].value, c.value);
    };
    if (share.forwards < share.micros.size()) return lacks(share.forwards, "forward");
    if (!training_) continue;
    if (share.backwards < share.micros.size()) return lacks(share.backwards, "backward");
    if (share.weights < share.micros.size()) return lacks(share.weights, "weight part");
  }
  return std::nullopt;
}

}  // namespace motley
