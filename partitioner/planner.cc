#include "partitioner/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "partitioner/cost_model.h"
#include "partitioner/cut_search.h"
#include "partitioner/shortfall.h"
#include "partitioner/simulator.h"
#include "pipeline/schedules.h"

namespace motley {
namespace {

// The estimate ranks candidates well but not exactly, so the best few are simulated: per shape as
// many as this, over all shapes as long as the simulated actions stay below the budget.
constexpr std::size_t kKeptPerShape = 16;
constexpr std::int64_t kSimulatedActionsMax = 300'000;
constexpr std::int64_t kActionsPerStageAndMicroBatch = 7;
// Two simulated times closer than this are the same; then the simpler plan wins.
constexpr double kSameTime = 1e-9;

Error contradiction(const std::string& what, const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kConfig, what, cause, remedy};
}

Result<void> check_options(const PlanOptions& options, int layers, int slots) {
  if (options.global_batch < 1 || options.micro_batch < 0) {
    return contradiction("impossible batch", "batches are counted from 1", "");
  }
  if (options.micro_batch > 0 && options.global_batch % options.micro_batch != 0) {
    return contradiction(fmt::format("a global batch of {} cannot be cut into micro-batches of {}",
                                     options.global_batch, options.micro_batch),
                         "the one does not divide the other",
                         "choose train.micro_batch among the divisors of train.global_batch, or 0");
  }
  if (options.schedule != "auto" && options.schedule != "gpipe" && options.schedule != "1f1b") {
    return contradiction(fmt::format("unknown schedule '{}'", options.schedule), "",
                         "use auto, gpipe or 1f1b");
  }
  const int stages = std::max(options.stages, static_cast<int>(options.cuts.size()) + 1);
  if (options.stages < 0 || (!options.cuts.empty() && options.stages != 0 &&
                             options.stages != static_cast<int>(options.cuts.size()) + 1)) {
    return contradiction(fmt::format("{} stages and {} cuts", options.stages, options.cuts.size()),
                         "n cuts make n + 1 stages", "leave one of the two out");
  }
  if (stages > layers) {
    return contradiction(fmt::format("{} stages for {} layers", stages, layers),
                         "each stage needs a layer", fmt::format("ask for at most {}", layers));
  }
  if (stages > slots) {
    return contradiction(fmt::format("{} stages for {} devices", stages, slots),
                         "each stage needs a device", "add devices, or ask for fewer stages");
  }
  std::int64_t previous = 0;
  for (const std::int64_t cut : options.cuts) {
    if (cut <= previous || cut >= layers) {
      return contradiction(fmt::format("impossible cut at layer {}", cut),
                           "cuts ascend and leave each stage a layer",
                           fmt::format("choose them between 1 and {}", layers - 1));
    }
    previous = cut;
  }
  return {};
}

std::vector<int> micro_batch_sizes(const PlanOptions& options) {
  if (options.micro_batch > 0) return {options.micro_batch};
  std::vector<int> sizes;
  for (int size = 1; size <= options.global_batch; ++size) {
    if (options.global_batch % size == 0) sizes.push_back(size);
  }
  return sizes;
}

struct ShapedCandidate {
  StepShape shape;
  Candidate candidate;
};

// A candidate with what the simulator says of it.
struct Trial {
  ShapedCandidate what;
  Plan plan;
  double step_s = 0;
};

std::string slot_name(const DeviceSlot& slot) {
  return slot.machine + "/" + slot.device;
}

class Planner {
 public:
  Planner(const ModelSpec& model, const CostModel& cost, const PlanOptions& options)
      : model_(model), cost_(cost), options_(options) {}

  Result<Plan> plan() {
    collect();
    if (candidates_.empty()) return infeasible();
    MOTLEY_TRY(simulate());
    Plan plan = std::move(best_->plan);
    add_notes(plan);
    return plan;
  }

 private:
  std::vector<StepShape> shapes() const {
    std::vector<StepShape> shapes;
    for (const int size : micro_batch_sizes(options_)) {
      const int count = options_.global_batch / size;
      if (options_.schedule != "gpipe") shapes.push_back({size, count, false});
      if (options_.schedule != "1f1b") shapes.push_back({size, count, true});
    }
    return shapes;
  }

  // Fills candidates_, best estimate first, and single_, the best that uses one device.
  void collect() {
    for (const StepShape& shape : shapes()) {
      const StageTable table(cost_, shape);
      for (Candidate& candidate : search(table)) {
        candidates_.push_back({shape, std::move(candidate)});
      }
      for (Candidate& candidate : search_cuts(table, options_.bytes_per_float, 1, 1)) {
        if (!single_ || candidate.estimate_s < single_->candidate.estimate_s) {
          single_ = {shape, std::move(candidate)};
        }
      }
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const ShapedCandidate& a, const ShapedCandidate& b) {
                       return std::tuple(a.candidate.estimate_s, a.candidate.slots.size()) <
                              std::tuple(b.candidate.estimate_s, b.candidate.slots.size());
                     });
  }

  std::vector<Candidate> search(const StageTable& table) const {
    if (options_.cuts.empty()) {
      return search_cuts(table, options_.bytes_per_float, options_.stages, kKeptPerShape);
    }
    const Candidate fixed = fixed_candidate();
    if (shortfall_of(table, fixed.slots, fixed.first_layers).missing_bytes > 0) return {};
    return {{fixed.slots, fixed.first_layers,
             estimate_step_s(table, options_.bytes_per_float, fixed.slots, fixed.first_layers)}};
  }

  // The stages that options.cuts prescribe, on the first slots in the given order.
  Candidate fixed_candidate() const {
    Candidate candidate{{0}, {0}, 0};
    for (const std::int64_t cut : options_.cuts) {
      candidate.slots.push_back(static_cast<int>(candidate.slots.size()));
      candidate.first_layers.push_back(static_cast<int>(cut));
    }
    return candidate;
  }

  Result<void> simulate() {
    std::int64_t actions = 0;
    for (const ShapedCandidate& candidate : candidates_) {
      if (best_ && actions > kSimulatedActionsMax) break;
      actions += kActionsPerStageAndMicroBatch * candidate.shape.micro_batches *
                 static_cast<std::int64_t>(candidate.candidate.slots.size());
      MOTLEY_ASSIGN(Trial trial, simulate_one(candidate));
      if (!best_ || is_better(trial, *best_)) best_ = std::move(trial);
    }
    if (!single_) return {};
    MOTLEY_ASSIGN(Trial alone, simulate_one(*single_));
    single_step_s_ = alone.step_s;
    const bool allowed = options_.stages <= 1 && options_.cuts.empty();
    if (allowed && is_better(alone, *best_)) best_ = std::move(alone);
    return {};
  }

  Result<Trial> simulate_one(const ShapedCandidate& what) const {
    Trial trial{what, describe(what), 0};
    MOTLEY_ASSIGN(const Schedule schedule,
                  make_schedule(trial.plan, tied_across_ranks(model_, trial.plan)));
    MOTLEY_ASSIGN(const SimulatedStep step,
                  simulate_step(schedule, trial.plan, model_, cost_, what.candidate.slots,
                                options_.bytes_per_float));
    trial.step_s = step.step_s;
    trial.plan.predicted_step_s = step.step_s;
    for (std::size_t r = 0; r < trial.plan.ranks.size(); ++r) {
      trial.plan.ranks[r].compute_s = step.compute_s[r];
    }
    return trial;
  }

  Plan describe(const ShapedCandidate& what) const {
    const auto& [slots, first_layers, estimate_s] = what.candidate;
    const int stages = static_cast<int>(slots.size());
    Plan plan;
    plan.model_hash = model_.hash();
    plan.micro_batch = what.shape.micro_batch;
    plan.micro_batches = what.shape.micro_batches;
    plan.schedule = what.shape.gpipe ? "gpipe" : "1f1b";
    for (int i = 0; i < stages; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int first = first_layers[at];
      const int last = i + 1 < stages ? first_layers[at + 1] : cost_.layer_count();
      const DeviceSlot& slot = cost_.slots()[static_cast<std::size_t>(slots[at])];
      plan.ranks.push_back({slot.machine, slot.device, slot.threads, 0,
                            cost_.memory_bytes(slots[at], first, last, plan.micro_batch,
                                               what.shape.in_flight(stages - i))});
      plan.chunks.push_back({first,
                             last - first,
                             {{Rank{i}, plan.micro_batches}},
                             i + 1 < stages ? options_.codec : "none"});
    }
    return plan;
  }

  // Shorter; and of equally short ones the simpler.
  bool is_better(const Trial& a, const Trial& b) const {
    const double margin_s = kSameTime * b.step_s;
    if (a.step_s < b.step_s - margin_s) return true;
    if (a.step_s > b.step_s + margin_s) return false;
    const auto names = [&](const Trial& t) {
      std::vector<std::string> list;
      for (const int slot : t.what.candidate.slots) {
        list.push_back(slot_name(cost_.slots()[static_cast<std::size_t>(slot)]));
      }
      return list;
    };
    const auto key = [&](const Trial& t) {
      return std::tuple(t.what.candidate.slots.size(), t.what.shape.gpipe, names(t),
                        t.what.shape.micro_batch, t.what.candidate.first_layers);
    };
    return key(a) < key(b);
  }

  void add_notes(Plan& plan) const {
    if (plan.rank_count() > 1 && single_) {
      plan.notes.push_back(fmt::format(
          "the group is {:.2f} times as fast as {} alone ({:.4g} s a step instead of {:.4g} s)",
          single_step_s_ / plan.predicted_step_s, single_name(), plan.predicted_step_s,
          single_step_s_));
    } else if (plan.rank_count() > 1) {
      plan.notes.push_back("no single device has memory for the whole model");
    } else if (cost_.slots().size() > 1) {
      plan.notes.push_back(fmt::format("{} alone is faster than any group", single_name()));
    }
    const std::string left_out = left_out_names();
    if (left_out.empty()) return;
    const bool chosen = options_.stages == 0 && options_.cuts.empty();
    plan.notes.push_back(
        fmt::format("left out: {} ({})", left_out,
                    chosen ? "the step is not shorter with it" : "the number of stages was given"));
  }

  std::string single_name() const {
    return slot_name(cost_.slots()[static_cast<std::size_t>(single_->candidate.slots.front())]);
  }

  std::string left_out_names() const {
    const std::vector<int>& used = best_->what.candidate.slots;
    std::vector<std::string> names;
    for (std::size_t s = 0; s < cost_.slots().size(); ++s) {
      if (std::find(used.begin(), used.end(), static_cast<int>(s)) != used.end()) continue;
      names.push_back(slot_name(cost_.slots()[s]));
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // The stage that misses memory where the model comes nearest to fitting.
  Error infeasible() const {
    std::optional<Shortfall> least;
    StepShape least_shape;
    for (const StepShape& shape : shapes()) {
      const StageTable table(cost_, shape);
      const Candidate fixed = fixed_candidate();
      const Shortfall shortfall = options_.cuts.empty()
                                      ? smallest_shortfall(table, options_.stages)
                                      : shortfall_of(table, fixed.slots, fixed.first_layers);
      if (least && least->missing_bytes <= shortfall.missing_bytes) continue;
      least = shortfall;
      least_shape = shape;
    }
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    const DeviceSlot& slot = cost_.slots()[static_cast<std::size_t>(least->slot)];
    const auto layer_name = [&](int l) { return model_.layers[static_cast<std::size_t>(l)].name; };
    return {ErrorCode::kInfeasible,
            fmt::format("the model does not fit: {} is short of {:.3g} GiB memory", slot_name(slot),
                        static_cast<double>(least->missing_bytes) / kGib),
            fmt::format("even in the best cut, layers {} … {} with micro-batches of {} need {:.3g} "
                        "GiB of its {:.3g} GiB",
                        layer_name(least->first_layer), layer_name(least->last_layer - 1),
                        least_shape.micro_batch, static_cast<double>(least->needed_bytes) / kGib,
                        static_cast<double>(slot.memory_bytes) / kGib),
            "add a machine or memory, or make the model or train.micro_batch smaller"};
  }

  const ModelSpec& model_;
  const CostModel& cost_;
  const PlanOptions& options_;
  std::vector<ShapedCandidate> candidates_;
  std::optional<ShapedCandidate> single_;
  double single_step_s_ = 0;
  std::optional<Trial> best_;
};

}  // namespace

Result<Plan> make_plan(const ModelSpec& model,
                       const Cluster& cluster,
                       const Profile& profile,
                       const PlanOptions& options) {
  if (model.layers.empty()) return contradiction("the model has no layers", "", "");
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(model, cluster, profile, options.default_threads,
                                options.optimizer_floats_per_parameter));
  MOTLEY_TRY(check_options(options, cost.layer_count(), static_cast<int>(cost.slots().size())));
  return Planner(model, cost, options).plan();
}

bool tied_across_ranks(const ModelSpec& model, const Plan& plan) {
  const auto pair = model.tied_pair();
  if (!pair) return false;
  const auto rank_of = [&](int layer) {
    const auto chunk = std::find_if(plan.chunks.begin(), plan.chunks.end(), [&](const auto& c) {
      return layer < c.first_layer + c.layer_count;
    });
    return chunk == plan.chunks.end() ? plan.chunks.back().replicas.front().rank
                                      : chunk->replicas.front().rank;
  };
  return rank_of(pair->owner_layer) != rank_of(pair->user_layer);
}

}  // namespace motley
