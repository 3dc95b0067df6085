#include "partitioner/search/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/toml.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "plan/schedule_facts.h"

namespace motley {
namespace {

Error contradiction(const std::string& what, const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kConfig, what, cause, remedy};
}

Result<void> check_batch(const PlanOptions& options) {
  if (options.global_batch < 1 || options.micro_batch < 0) {
    return contradiction("impossible batch", "batches are counted from 1", "");
  }
  if (options.micro_batch > 0 && options.global_batch % options.micro_batch != 0) {
    return contradiction(fmt::format("a global batch of {} cannot be cut into micro-batches of {}",
                                     options.global_batch, options.micro_batch),
                         "it is not a multiple",
                         "choose train.micro_batch among the divisors of train.global_batch, or 0");
  }
  if (options.micro_batch > 0 &&
      options.global_batch / options.micro_batch > kPlannedMicroBatchesMax) {
    return contradiction(
        fmt::format("a step of {} micro-batches", options.global_batch / options.micro_batch),
        fmt::format("the limit is {}", kPlannedMicroBatchesMax),
        "raise train.micro_batch, or set it to 0 to let the plan choose");
  }
  return {};
}

Result<void> check_words(const PlanOptions& options) {
  const std::vector<const char*> known = schedule_choices();
  if (std::ranges::find(known, std::string_view(options.schedule)) == known.end()) {
    return contradiction(fmt::format("unknown schedule '{}'", options.schedule), "",
                         fmt::format("use {}", word_list(known, "or")));
  }
  if (options.recompute != "auto" && options.recompute != "none" && options.recompute != "all") {
    return contradiction(fmt::format("unknown value '{}' of recompute", options.recompute), "",
                         "use auto, none or all");
  }
  return {};
}

Result<void> check_stages(const PlanOptions& options, int layers, int slots) {
  const int cuts = static_cast<int>(options.cuts.size());
  const int stages = std::max(options.stages, cuts + 1);
  if (options.stages < 0 || (cuts > 0 && options.stages != 0 && options.stages != cuts + 1)) {
    return with_key(
        contradiction(fmt::format("parallel.cuts: {} stages and {} cuts", options.stages, cuts),
                      "n cuts give n + 1 stages", "leave one of the two out"),
        "parallel.cuts");
  }
  const std::string fewer = fmt::format("use at most {}", std::min(layers, slots));
  if (stages > layers) {
    return contradiction(fmt::format("{} stages for {} layers", stages, layers),
                         "each stage needs a layer", fewer);
  }
  if (stages > slots) {
    return contradiction(
        fmt::format("{} stages for {} devices", stages, slots),
        "each stage needs its own device, although a plan may choose more parts than that",
        "add devices, or " + fewer);
  }
  std::int64_t previous = 0;
  for (const std::int64_t cut : options.cuts) {
    if (cut <= previous || cut >= layers) {
      return with_key(contradiction(fmt::format("parallel.cuts: impossible cut at layer {}", cut),
                                    "cuts must ascend and leave each stage a layer",
                                    fmt::format("choose them between 1 and {}", layers - 1)),
                      "parallel.cuts");
    }
    previous = cut;
  }
  return {};
}

Recompute recompute_rule(const std::string& word) {
  if (word == "all") return Recompute::kAlways;
  return word == "none" ? Recompute::kNever : Recompute::kAuto;
}

void pin_layers(const Pins& pins,
                const std::vector<std::string>& names,
                const CostModel& cost,
                SearchSpace& space) {
  if (pins.layers.empty()) return;
  space.may_hold.assign(cost.slots().size(), std::vector<bool>(names.size(), true));
  for (const Pins::LayerPin& pin : pins.layers) {
    const auto layer = static_cast<std::size_t>(*pinned_layer(pin.layer, names));
    for (std::size_t s = 0; s < cost.slots().size(); ++s) {
      if (cost.slots()[s].machine != pin.machine) space.may_hold[s][layer] = false;
    }
  }
}

// Devices on machines that a 'never' pin does not exclude.
int usable_devices(const Pins& pins, const Cluster& cluster) {
  std::size_t devices = 0;
  for (const Machine& machine : cluster.machines) {
    if (std::ranges::find(pins.never, machine.name) == pins.never.end()) {
      devices += machine.devices.size();
    }
  }
  return static_cast<int>(devices);
}

Result<void> check_left_by_pins(const PlanOptions& options, const Cluster& cluster) {
  const int left = usable_devices(options.pins, cluster);
  const int stages = std::max(1, options.stages);
  if (left >= stages) return {};
  return contradiction(fmt::format("{} stages for {} devices", stages, left),
                       "the pins exclude the others", "remove a 'never' pin");
}

Result<void> check_planning_size(const ModelSpec& model, const Cluster& cluster) {
  if (model.layers.empty()) return contradiction("the model has no layers", "", "");
  if (model.layers.size() > kPlannedLayersMax) {
    return contradiction(fmt::format("a model of {} layers", model.layers.size()),
                         fmt::format("the limit is {}", kPlannedLayersMax),
                         "lower model.layers; a block of gpt2 has two layers");
  }
  std::size_t devices = 0;
  for (const Machine& machine : cluster.machines) devices += machine.devices.size();
  if (devices > kPlannedDevicesMax) {
    return contradiction(fmt::format("a cluster of {} devices", devices),
                         fmt::format("the limit is {}", kPlannedDevicesMax),
                         "list fewer devices in the cluster file");
  }
  return {};
}

// A text has a row for each token, an image one for each position. The largest dimension of a
// boundary is taken as the width.
std::int64_t rows_per_sample(const ModelSpec& model) {
  std::int64_t rows = model.tokens_per_sample;
  for (const LayerSpec& layer : model.layers) {
    for (const std::vector<std::int64_t>& shape : layer.outputs) {
      const std::int64_t width = shape.empty() ? 1 : std::ranges::max(shape);
      rows = std::max(rows, TensorSpec{Dtype::kFloat32, shape}.count() / width);
    }
  }
  return rows;
}

// Asked-for rounds need replicas of the whole model.
Result<void> check_rounds(const PlanOptions& options) {
  const auto& rounds = options.rounds;
  if (!rounds || rounds->steps == 0 || !rounds->is_required || permits_rounds(options)) return {};
  const char* const off = "or set parallel.rounds to off or auto";
  return with_key(contradiction("parallel.rounds needs the whole model on each machine",
                                options.replicas ? "the model is to be divided into stages"
                                                 : "parallel.replicas is false",
                                options.replicas
                                    ? fmt::format("leave out the stages and parallel.cuts, {}", off)
                                    : fmt::format("set parallel.replicas = true, {}", off)),
                  "parallel.rounds");
}

}  // namespace

Result<void> check_plan_options(const PlanOptions& options,
                                const ModelSpec& model,
                                const Cluster& cluster) {
  MOTLEY_TRY(check_planning_size(model, cluster));
  MOTLEY_TRY(check_pins(options.pins, model.layer_names(), cluster));
  MOTLEY_TRY(check_batch(options));
  MOTLEY_TRY(check_words(options));
  MOTLEY_TRY(check_rounds(options));
  const int devices = usable_devices({}, cluster);
  MOTLEY_TRY(check_stages(options, static_cast<int>(model.layers.size()), devices));
  return check_left_by_pins(options, cluster);
}

Result<void> check_measured(const PlanOptions& options, const CostModel& cost) {
  const ScheduleFacts* schedule = find_schedule(options.schedule);
  if (schedule != nullptr && schedule->splits_backward) MOTLEY_TRY(cost.check_split());
  for (const std::string& codec : options.codecs) MOTLEY_TRY(cost.check_codec(codec));
  return {};
}

// Two samples, or one if it has many tokens, and never few tokens: of the compared models and
// clusters, with 1 to 6 stages, none lost more than 10 % (docs/algorithms.md).
int usual_micro_batch(std::int64_t rows_per_sample, int global_batch) {
  constexpr std::int64_t kTokensMin = 64;
  constexpr std::int64_t kTokensMany = 512;
  const std::int64_t tokens = std::max(kTokensMin, std::min(kTokensMany, 2 * rows_per_sample));
  for (const int size : micro_batch_sizes({.global_batch = global_batch})) {
    if (size * rows_per_sample >= tokens) return size;
  }
  return global_batch;
}

int usual_micro_batch(const ModelSpec& model, int global_batch) {
  const int usual = usual_micro_batch(rows_per_sample(model), global_batch);
  if (!model.keeps_statistics() || usual >= kSamplesOfStatistics) return usual;
  for (const int size : micro_batch_sizes({.global_batch = global_batch})) {
    if (size >= kSamplesOfStatistics) return size;
  }
  return global_batch;
}

std::vector<int> micro_batch_sizes(const PlanOptions& options) {
  if (options.micro_batch > 0) return {options.micro_batch};
  std::vector<int> sizes;
  for (int size = 1; size <= options.global_batch; ++size) {
    const int count = options.global_batch / size;
    if (count * size != options.global_batch || count > kPlannedMicroBatchesMax) continue;
    if (size != options.micro_batch_left_out) sizes.push_back(size);
  }
  return sizes;
}

SearchSpace search_space(const PlanOptions& options,
                         const ModelSpec& model,
                         const CostModel& cost) {
  SearchSpace space;
  space.codecs = options.codecs;
  space.stages = options.stages;
  space.replicas = options.replicas;
  space.recompute = recompute_rule(options.recompute);
  pin_layers(options.pins, model.layer_names(), cost, space);
  if (!options.pins.never.empty()) {
    for (const DeviceSlot& slot : cost.slots()) {
      space.usable.push_back(std::find(options.pins.never.begin(), options.pins.never.end(),
                                       slot.machine) == options.pins.never.end());
    }
  }
  for (const std::string& machine : options.pins.always) {
    std::vector<int>& wanted = space.must_use.emplace_back();
    for (std::size_t s = 0; s < cost.slots().size(); ++s) {
      if (cost.slots()[s].machine == machine) wanted.push_back(static_cast<int>(s));
    }
  }
  return space;
}

}  // namespace motley
