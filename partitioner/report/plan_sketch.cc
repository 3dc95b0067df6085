#include "partitioner/report/plan_sketch.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "partitioner/cost/cost_model.h"
#include "partitioner/report/explain.h"
#include "partitioner/report/plan_comparison.h"
#include "partitioner/simulate/simulator.h"

namespace motley {
namespace {

using MachinePair = std::pair<std::string, std::string>;

// The codecs of the boundaries between stages, by pair of machines.
std::map<MachinePair, std::set<std::string>> boundary_codecs(const Plan& plan) {
  std::map<MachinePair, std::set<std::string>> codecs;
  for (std::size_t c = 0; c + 1 < plan.chunks.size(); ++c) {
    for (const Replica& before : plan.chunks[c].replicas) {
      for (const Replica& behind : plan.chunks[c + 1].replicas) {
        const std::string& from = plan.ranks[before.rank.index()].machine;
        const std::string& to = plan.ranks[behind.rank.index()].machine;
        codecs[{from, to}].insert(plan.chunks[c].codec);
        codecs[{to, from}].insert(plan.chunks[c].codec);
      }
    }
  }
  return codecs;
}

}  // namespace

Result<PlanSketch> sketch_plan(const PlanningInput& input,
                               const Plan& plan,
                               const PlanAnalysis& analysis) {
  MOTLEY_ASSIGN(
      const CostModel cost,
      CostModel::make(input.model, input.cluster, input.profile, input.options.default_threads,
                      process_state_of(input.options, plan), plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  PlanSketch sketch{.step_s = analysis.step_s,
                    .units_per_s = units_per_s(plan, input.model),
                    .unit = input.model.unit,
                    .shape = schedule_text(plan),
                    .layer_count = static_cast<int>(input.model.layers.size()),
                    .parameters = input.model.parameter_count(),
                    .frozen_values = input.model.constant_values(),
                    .times_label = times_label(plan)};
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankPlan& rank = plan.ranks[r];
    const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(slots[r])];
    sketch.ranks.push_back({.machine = rank.machine,
                            .device = rank.device,
                            .threads = rank.threads,
                            .time = analysis.ranks[r],
                            .memory_bytes = static_cast<double>(rank.memory_bytes),
                            .memory_limit_bytes = static_cast<double>(slot.memory_bytes)});
  }
  for (const ChunkPlan& chunk : plan.chunks) {
    const int end = chunk.first_layer + chunk.layer_count;
    if (end > sketch.layer_count) {
      return Error{ErrorCode::kConfig, "the plan is of another model",
                   fmt::format("it has a layer {} of {}", end, sketch.layer_count), "plan again"};
    }
    for (const Replica& replica : chunk.replicas) {
      RankSketch& rank = sketch.ranks[replica.rank.index()];
      rank.runs.push_back({chunk.first_layer, chunk.layer_count, chunk.recompute});
      rank.layers += (rank.layers.empty() ? "" : ", ") + layers_text(input.model, chunk);
      rank.parameters += cost.sizes().updated_parameters(chunk.first_layer, end);
    }
  }
  const auto codecs = boundary_codecs(plan);
  for (const LinkUse& use : analysis.links) {
    LinkSketch& link = sketch.links.emplace_back();
    link.use = use;
    link.speed = input.cluster.link(use.from, use.to);
    const auto found = codecs.find({use.from, use.to});
    if (found == codecs.end()) continue;
    for (const std::string& codec : found->second) {
      link.codec += (link.codec.empty() ? "" : ", ") + codec;
    }
  }
  return sketch;
}

}  // namespace motley
