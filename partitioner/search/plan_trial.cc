#include "partitioner/search/plan_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "partitioner/cost/plan_memory.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/planner.h"
#include "partitioner/simulate/simulator.h"
#include "pipeline/schedule/schedules.h"

namespace motley {
namespace {

// Simulated times that differ by less are equal; then the simpler plan wins.
constexpr double kSameTime = 1e-9;

constexpr double kMicrosecond = 1e-6;

std::int64_t microseconds(double seconds) {
  return std::max<std::int64_t>(1, std::llround(seconds / kMicrosecond));
}

std::int64_t mbps_of(double bytes_per_s) {
  if (bytes_per_s == 0) return 0;
  return std::llround(std::clamp(bytes_per_s * 8e-6, 1.0, static_cast<double>(kLinkMbpsMax)));
}

// Converts a candidate to a plan. A slot in several stages is one rank with several chunks.
class Description {
 public:
  // The ranks of a stage follow those of earlier stages, in the order of their slots.
  Description(const ModelSpec& model,
              const CostModel& cost,
              const SearchSpace& space,
              const StepShape& shape,
              const Candidate& candidate)
      : cost_(cost),
        space_(space),
        shape_(shape),
        stages_(candidate.stages),
        in_flight_(in_flight_of(candidate.stages, shape)) {
    plan_.micro_batch = shape.micro_batch;
    plan_.micro_batches = shape.micro_batches;
    plan_.schedule = schedule_facts(shape.schedule).name;
    plan_.gradient_codec = cost.gradient_codec();
    for (std::size_t i = 0; i < stages_.size(); ++i) add_chunk(i);
    for (std::size_t r = 0; r < slots_.size(); ++r) {
      plan_.ranks[r].link_mbps = mbps_of(cost_.machine_bandwidth(slots_[r], slots_));
    }
    if (shape_.limits_in_flight() && !is_plain_1f1b()) {
      for (std::size_t i = 0; i < stages_.size(); ++i) plan_.chunks[i].in_flight = in_flight_[i];
    }
    if (shape_.splits_backward()) add_times();
    is_tied_ = tied_across_ranks(model, plan_);
  }

  // With the requested number of queued weight parts, or as many as fit the ranks' memory.
  Result<Schedule> schedule_that_fits() {
    for (;;) {
      MOTLEY_ASSIGN(Schedule found, schedule());
      const auto short_of = rank_short_of_memory();
      if (!short_of) return found;
      MOTLEY_TRY(queue_less(*short_of));
    }
  }

  // The plan of the last schedule.
  const Plan& plan() const { return plan_; }

  // [Rank]
  const std::vector<int>& slots() const { return slots_; }

 private:
  bool is_last(std::size_t i) const { return i + 1 == stages_.size(); }

  int end_of(std::size_t i) const {
    return is_last(i) ? cost_.layer_count() : stages_[i + 1].first_layer;
  }

  // Whether every stage has one micro-batch more in flight than the next one, which is the default
  // of plans.
  bool is_plain_1f1b() const {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const int plain = static_cast<int>(stages_.size() - i);
      if (in_flight_[i] != std::min(plain, shape_.micro_batches)) return false;
    }
    return true;
  }

  std::size_t rank_of(int slot) const {
    return static_cast<std::size_t>(std::ranges::find(slots_, slot) - slots_.begin());
  }

  const DeviceSlot& device(std::size_t rank) const {
    return cost_.slots()[static_cast<std::size_t>(slots_[rank])];
  }

  void add_chunk(std::size_t i) {
    const StageChoice& stage = stages_[i];
    ChunkPlan chunk;
    chunk.first_layer = stage.first_layer;
    chunk.layer_count = end_of(i) - stage.first_layer;
    chunk.codec = is_last(i) ? "none" : space_.codecs[static_cast<std::size_t>(stage.codec)];
    chunk.recompute = stage.recompute;
    if (shape_.splits_backward()) {
      chunk.queued_weights = shape_.in_flight(static_cast<int>(stages_.size()));
    }
    for (std::size_t k = 0; k < stage.slots.size(); ++k) {
      const std::size_t rank = rank_of(stage.slots[k]);
      if (rank == slots_.size()) {
        slots_.push_back(stage.slots[k]);
        const DeviceSlot& slot = device(rank);
        plan_.ranks.push_back({.machine = slot.machine,
                               .device = slot.device,
                               .threads = slot.threads,
                               .compute_dtype = slot.compute_dtype});
      }
      chunk.replicas.push_back({Rank{static_cast<std::int32_t>(rank)}, stage.batch_split[k]});
    }
    std::ranges::sort(chunk.replicas, {}, &Replica::rank);
    plan_.chunks.push_back(std::move(chunk));
  }

  std::optional<std::size_t> rank_short_of_memory() const {
    for (std::size_t r = 0; r < slots_.size(); ++r) {
      if (is_short_of_memory(r)) return r;
    }
    return {};
  }

  bool is_short_of_memory(std::size_t r) const {
    return plan_.ranks[r].memory_bytes > device(r).memory_bytes;
  }

  Result<Schedule> schedule() {
    MOTLEY_ASSIGN(Schedule schedule, make_schedule(plan_, is_tied_));
    const std::vector<std::int64_t> bytes = peak_memory_bytes(schedule, plan_, cost_, slots_);
    for (std::size_t r = 0; r < bytes.size(); ++r) plan_.ranks[r].memory_bytes = bytes[r];
    return schedule;
  }

  // [of the rank's chunks]
  std::vector<int*> queues_of(std::size_t r) {
    std::vector<int*> queues;
    for (ChunkPlan& chunk : plan_.chunks) {
      if (chunk.is_on(Rank{static_cast<std::int32_t>(r)})) queues.push_back(&chunk.queued_weights);
    }
    return queues;
  }

  // Reduces the rank's queued weight parts of each chunk to what fits its memory.
  Result<void> queue_less(std::size_t r) {
    const std::vector<int*> queues = queues_of(r);
    std::vector<int> wanted;
    for (const int* queue : queues) wanted.push_back(*queue);
    int fits = 0;
    int fails = std::ranges::max(wanted);
    const auto limit_to = [&](int most) {
      for (std::size_t i = 0; i < queues.size(); ++i) *queues[i] = std::min(wanted[i], most);
    };
    while (fails - fits > 1) {
      const int most = fits + (fails - fits) / 2;
      limit_to(most);
      MOTLEY_TRY(schedule());
      (is_short_of_memory(r) ? fails : fits) = most;
    }
    if (fits == 0) return no_memory(device(r));
    limit_to(fits);
    return {};
  }

  Error no_memory(const DeviceSlot& slot) const {
    const std::string name = fmt::format("{}/{}", slot.machine, slot.device);
    if (!shape_.splits_backward()) {
      return {ErrorCode::kInfeasible, fmt::format("{} has too little memory for its chunks", name),
              "even with the fewest micro-batches in flight they need more than it has",
              "add memory"};
    }
    return {ErrorCode::kInfeasible, fmt::format("{} has too little memory to split backward", name),
            "besides the micro-batches in flight it must store one with a delayed weight part",
            "use schedule auto or 1f1b, or add memory"};
  }

  void add_times() {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const int first = stages_[i].first_layer;
      const int end = end_of(i);
      const int samples = shape_.micro_batch;
      const bool recompute = stages_[i].recompute;
      for (Replica& replica : plan_.chunks[i].replicas) {
        const int slot = slots_[replica.rank.index()];
        double forward_s = cost_.forward_s(slot, first, end, samples);
        double input_s = cost_.backward_input_s(slot, first, end, samples, recompute);
        const double weight_s = cost_.backward_weight_s(slot, first, end, samples);
        if (i > 0) {
          add_messages(slot, i - 1, boundary(i - 1).gradient(), boundary(i - 1), input_s,
                       forward_s);
        }
        if (!is_last(i)) {
          add_messages(slot, i, boundary(i), boundary(i).gradient(), forward_s, input_s);
        }
        replica.times = {microseconds(forward_s), microseconds(input_s), microseconds(weight_s)};
      }
      if (!is_last(i)) plan_.chunks[i].hop_us = hop_us(i);
    }
  }

  // Adds the slot's time for messages over the boundary after stage i to its passes: that of the
  // sent message to the pass that computes it, that of the received one to the pass that uses it.
  // Asynchronous codecs are part of the hop instead.
  void add_messages(int slot,
                    std::size_t i,
                    const BoundarySize& sent,
                    const BoundarySize& received,
                    double& sending_s,
                    double& receiving_s) const {
    if (cost_.overlaps_codecs(slot)) return;
    const std::string& codec = plan_.chunks[i].codec;
    sending_s += cost_.message_s(slot) + cost_.encode_s(slot, sent, codec);
    receiving_s += cost_.message_s(slot) + cost_.decode_s(slot, received, codec);
  }

  std::int64_t hop_us(std::size_t i) const {
    double longest_s = 0;
    for (const int a : stages_[i].slots) {
      for (const int b : stages_[i + 1].slots) {
        if (a == b) continue;
        longest_s = std::max({longest_s, transfer_path_s(a, b, i, boundary(i)),
                              transfer_path_s(b, a, i, boundary(i).gradient())});
      }
    }
    return microseconds(longest_s);
  }

  double transfer_path_s(int from, int to, std::size_t i, const BoundarySize& size) const {
    const std::string& codec = plan_.chunks[i].codec;
    const double bytes = cost_.frame_bytes(from, size, codec);
    return cost_.transfer_s(from, to, bytes) + cost_.overlapped_s(from, to, size, codec);
  }

  // The boundary after the stage.
  BoundarySize boundary(std::size_t i) const {
    return cost_.boundary(end_of(i) - 1, shape_.micro_batch);
  }

  const CostModel& cost_;
  const SearchSpace& space_;
  const StepShape& shape_;
  const std::vector<StageChoice>& stages_;
  const std::vector<int> in_flight_;  // [stage]
  Plan plan_;
  bool is_tied_ = false;    // a parameter is tied over several ranks
  std::vector<int> slots_;  // [Rank]
};

}  // namespace

Result<PlanTrial> try_candidate(const ModelSpec& model,
                                const CostModel& cost,
                                const SearchSpace& space,
                                const StepShape& shape,
                                Candidate candidate) {
  PlanTrial trial{shape, std::move(candidate), {}};
  Description description(model, cost, space, shape, trial.candidate);
  MOTLEY_ASSIGN(const Schedule schedule, description.schedule_that_fits());
  trial.plan = description.plan();
  MOTLEY_ASSIGN(const SimulatedStep step,
                simulate_step(schedule, trial.plan, model, cost, description.slots()));
  const double factor = cost.single_device_factor_of(description.slots());
  trial.plan.predicted_step_s = factor * step.step_s;
  for (std::size_t r = 0; r < trial.plan.ranks.size(); ++r) {
    trial.plan.ranks[r].compute_s = factor * (step.compute_s[r] + step.codec_s[r]);
  }
  return trial;
}

bool is_better(const PlanTrial& a, const PlanTrial& b) {
  const double margin_s = kSameTime * b.plan.predicted_step_s;
  if (a.plan.predicted_step_s < b.plan.predicted_step_s - margin_s) return true;
  if (a.plan.predicted_step_s > b.plan.predicted_step_s + margin_s) return false;
  const std::size_t stages = a.candidate.stages.size();
  if (stages != b.candidate.stages.size()) return stages < b.candidate.stages.size();
  const int a_complexity = schedule_facts(a.shape.schedule).complexity;
  const int b_complexity = schedule_facts(b.shape.schedule).complexity;
  if (a_complexity != b_complexity) return a_complexity < b_complexity;
  if (a.shape.warm_up != b.shape.warm_up) return a.shape.warm_up < b.shape.warm_up;
  if (a.shape.micro_batch != b.shape.micro_batch) return a.shape.micro_batch < b.shape.micro_batch;
  return is_simpler(a.candidate, b.candidate);
}

}  // namespace motley
