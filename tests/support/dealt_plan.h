// Plans without a search: a model's layers are distributed evenly over the chunks.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "models/spec/model_spec.h"
#include "plan/plan.h"

namespace motley {

// `replicas`: the replicas of each chunk, [ChunkId]. Micro-batches have one sample. Ranks have no
// machine assigned.
inline Plan dealt_plan(const ModelSpec& model, std::vector<std::vector<Replica>> replicas) {
  Plan plan;
  plan.model_hash = model.hash();
  const auto layers = static_cast<int>(model.layers.size());
  const auto chunks = static_cast<int>(replicas.size());
  for (int c = 0; c < chunks; ++c) {
    auto& members = replicas[static_cast<std::size_t>(c)];
    for (const Replica& replica : members) {
      if (plan.ranks.size() <= replica.rank.index()) plan.ranks.resize(replica.rank.index() + 1);
    }
    const int first = c * layers / chunks;
    plan.chunks.push_back({first, (c + 1) * layers / chunks - first, std::move(members)});
  }
  return plan;
}

}  // namespace motley
