#include "pipeline/collectives/active_bucket.h"

#include <algorithm>

namespace motley {
namespace {

bool is_awaited(const ActiveBucket::Incoming& incoming) {
  return incoming.frame.valid() && !incoming.frame.done();
}

}  // namespace

bool ActiveBucket::all_received() const {
  return std::ranges::none_of(incoming[phase], is_awaited);
}

Rank ActiveBucket::awaited_rank() const {
  if (phase == kReducePhases) return outgoing.front().to;
  const auto missing = std::ranges::find_if(incoming[phase], is_awaited);
  const bool arrived_meanwhile = missing == incoming[phase].end();
  return (arrived_meanwhile ? incoming[phase].begin() : missing)->expected->message.from;
}

const char* ActiveBucket::phase_text() const {
  switch (static_cast<ReducePhase>(phase)) {
    case ReducePhase::kLocalReduceScatter:
      return "reduce-scatter inside a machine";
    case ReducePhase::kCrossReduceScatter:
      return "reduce-scatter between machines";
    case ReducePhase::kCrossAllGather:
      return "all-gather between machines";
    case ReducePhase::kLocalAllGather:
      return "all-gather inside a machine";
  }
  return "ending";
}

}  // namespace motley
