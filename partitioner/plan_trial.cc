#include "partitioner/plan_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "partitioner/planner.h"
#include "partitioner/simulator.h"
#include "pipeline/schedules.h"

namespace motley {
namespace {

// Two simulated times closer than this are the same; then the simpler plan wins.
constexpr double kSameTime = 1e-9;

// Of the replicas of the stage [stage.first_layer, last), counted as in stage.slots.
class StageMemory {
 public:
  StageMemory(
      const CostModel& cost, const StepShape& shape, const StageChoice& stage, int last, int depth)
      : cost_(cost), shape_(shape), stage_(stage), last_(last), depth_(depth) {}

  const DeviceSlot& slot(std::size_t k) const {
    return cost_.slots()[static_cast<std::size_t>(stage_.slots[k])];
  }

  std::int64_t bytes(std::size_t k, int queued_weights) const {
    return cost_.memory_bytes(stage_.slots[k], stage_.first_layer, last_, shape_.micro_batch,
                              shape_.in_flight(depth_, stage_.shares[k]), stage_.recompute,
                              std::min(queued_weights, stage_.shares[k]));
  }

  // As many weight parts as `wanted`, or as all replicas have room for.
  Result<int> queued_weights(int wanted) const {
    for (std::size_t k = 0; k < stage_.slots.size(); ++k) {
      while (wanted > 0 && bytes(k, wanted) > slot(k).memory_bytes) --wanted;
      if (wanted > 0) continue;
      return Error{
          ErrorCode::kInfeasible,
          fmt::format("{}/{} has no memory to split backward", slot(k).machine, slot(k).device),
          "beside the micro-batches in flight it has to hold one whose weight part is put off",
          "use schedule auto or 1f1b, or add memory"};
    }
    return wanted;
  }

 private:
  const CostModel& cost_;
  const StepShape& shape_;
  const StageChoice& stage_;
  const int last_;
  const int depth_;
};

// The ranks of a stage follow those of the stage before it, replicas in the order of their slots.
Result<Plan> describe(const ModelSpec& model,
                      const CostModel& cost,
                      const SearchSpace& space,
                      const StepShape& shape,
                      const Candidate& candidate) {
  Plan plan;
  plan.model_hash = model.hash();
  plan.micro_batch = shape.micro_batch;
  plan.micro_batches = shape.micro_batches;
  plan.schedule = shape.gpipe ? "gpipe" : shape.split ? "split" : "1f1b";
  plan.gradient_codec = cost.gradient_codec();
  const std::size_t stages = candidate.stages.size();
  for (std::size_t i = 0; i < stages; ++i) {
    const StageChoice& stage = candidate.stages[i];
    const bool is_last = i + 1 == stages;
    const int last = is_last ? cost.layer_count() : candidate.stages[i + 1].first_layer;
    ChunkPlan chunk;
    chunk.first_layer = stage.first_layer;
    chunk.layer_count = last - stage.first_layer;
    chunk.codec = is_last ? "none" : space.codecs[static_cast<std::size_t>(stage.codec)];
    chunk.recompute = stage.recompute;
    const int depth = static_cast<int>(stages - i);
    if (!shape.gpipe && shape.warm_up > 1) chunk.in_flight = shape.in_flight(depth);
    const StageMemory memory(cost, shape, stage, last, depth);
    if (shape.split) {
      const int wanted = shape.in_flight(static_cast<int>(stages));
      MOTLEY_ASSIGN(chunk.queued_weights, memory.queued_weights(wanted));
    }
    for (std::size_t k = 0; k < stage.slots.size(); ++k) {
      const DeviceSlot& slot = memory.slot(k);
      chunk.replicas.push_back({Rank{plan.rank_count()}, stage.shares[k]});
      plan.ranks.push_back(
          {slot.machine, slot.device, slot.threads, 0, memory.bytes(k, chunk.queued_weights)});
    }
    plan.chunks.push_back(std::move(chunk));
  }
  return plan;
}

}  // namespace

Result<PlanTrial> try_candidate(const ModelSpec& model,
                                const CostModel& cost,
                                const SearchSpace& space,
                                const StepShape& shape,
                                Candidate candidate) {
  PlanTrial trial{shape, std::move(candidate), {}};
  MOTLEY_ASSIGN(trial.plan, describe(model, cost, space, shape, trial.candidate));
  std::vector<int> slots;
  for (const StageChoice& stage : trial.candidate.stages) {
    slots.insert(slots.end(), stage.slots.begin(), stage.slots.end());
  }
  MOTLEY_ASSIGN(const Schedule schedule,
                make_schedule(trial.plan, tied_across_ranks(model, trial.plan)));
  MOTLEY_ASSIGN(const SimulatedStep step, simulate_step(schedule, trial.plan, model, cost, slots));
  trial.plan.predicted_step_s = step.step_s;
  for (std::size_t r = 0; r < trial.plan.ranks.size(); ++r) {
    trial.plan.ranks[r].compute_s = step.compute_s[r] + step.codec_s[r];
  }
  return trial;
}

bool is_better(const PlanTrial& a, const PlanTrial& b) {
  const double margin_s = kSameTime * b.plan.predicted_step_s;
  if (a.plan.predicted_step_s < b.plan.predicted_step_s - margin_s) return true;
  if (a.plan.predicted_step_s > b.plan.predicted_step_s + margin_s) return false;
  const std::size_t stages = a.candidate.stages.size();
  if (stages != b.candidate.stages.size()) return stages < b.candidate.stages.size();
  if (a.shape.gpipe != b.shape.gpipe) return b.shape.gpipe;
  if (a.shape.split != b.shape.split) return b.shape.split;
  if (a.shape.warm_up != b.shape.warm_up) return a.shape.warm_up < b.shape.warm_up;
  if (a.shape.micro_batch != b.shape.micro_batch) return a.shape.micro_batch < b.shape.micro_batch;
  return is_simpler(a.candidate, b.candidate);
}

}  // namespace motley
