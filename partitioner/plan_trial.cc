#include "partitioner/plan_trial.h"

#include <utility>

#include "partitioner/planner.h"
#include "partitioner/simulator.h"
#include "pipeline/schedules.h"

namespace motley {
namespace {

// Two simulated times closer than this are the same; then the simpler plan wins.
constexpr double kSameTime = 1e-9;

// The ranks of a stage follow those of the stage before it, replicas in the order of their slots.
Plan describe(const ModelSpec& model,
              const CostModel& cost,
              const SearchSpace& space,
              const StepShape& shape,
              const Candidate& candidate) {
  Plan plan;
  plan.model_hash = model.hash();
  plan.micro_batch = shape.micro_batch;
  plan.micro_batches = shape.micro_batches;
  plan.schedule = shape.gpipe ? "gpipe" : "1f1b";
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
    for (std::size_t k = 0; k < stage.slots.size(); ++k) {
      const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(stage.slots[k])];
      const int in_flight = shape.in_flight(depth, stage.shares[k]);
      chunk.replicas.push_back({Rank{plan.rank_count()}, stage.shares[k]});
      plan.ranks.push_back({slot.machine, slot.device, slot.threads, 0,
                            cost.memory_bytes(stage.slots[k], stage.first_layer, last,
                                              shape.micro_batch, in_flight, stage.recompute)});
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
  trial.plan = describe(model, cost, space, shape, trial.candidate);
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
  if (a.shape.warm_up != b.shape.warm_up) return a.shape.warm_up < b.shape.warm_up;
  if (a.shape.micro_batch != b.shape.micro_batch) return a.shape.micro_batch < b.shape.micro_batch;
  return is_simpler(a.candidate, b.candidate);
}

}  // namespace motley
