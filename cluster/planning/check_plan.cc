#include "cluster/planning/check_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/toml.h"
#include "compression/codec_chain.h"
#include "compression/facts/codec_facts.h"
#include "compression/feedback/gradient_compressor.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/search/planner.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"

namespace motley {
namespace {

Result<void> check_codecs(const Plan& plan) {
  for (const ChunkPlan& chunk : plan.chunks) {
    const auto chain = parse_codec_chain(chunk.codec);
    if (!chain.ok()) return with_context(chain.error(), "a boundary of the plan");
    if (!chain->for_gradients_only()) continue;
    return Error{
        ErrorCode::kConfig, fmt::format("the plan sends {} between stages", chunk.codec),
        kWhyForGradientsOnly,
        fmt::format("make the codec of each boundary {}", word_list(format_names(), "or"))};
  }
  const auto codec = make_gradient_codec({.chain = plan.gradient_codec});
  if (!codec.ok()) return with_context(codec.error(), "gradient_codec of the plan");
  if (!plan.rounds) return {};
  const auto of_rounds = make_gradient_codec({.chain = plan.rounds->codec});
  if (!of_rounds.ok()) return with_context(of_rounds.error(), "the codec of the plan's rounds");
  return {};
}

Result<void> check_schedule(const Plan& plan, const ModelSpec& model) {
  const bool tied = tied_across_ranks(model, plan);
  for (const StepScope scope : step_scopes(plan.rounds)) {
    MOTLEY_ASSIGN(const Schedule schedule, make_schedule(plan, tied, scope));
    MOTLEY_ASSIGN([[maybe_unused]] const ScheduleStats stats, validate_schedule(schedule, tied));
  }
  return {};
}

// Checks that the cluster has the rank's device.
Result<void> check_place(const RankPlan& rank, const Cluster& cluster) {
  const char* const remedy = "give the cluster file that the plan was made for by --cluster";
  const Machine* machine = cluster.find(rank.machine);
  if (machine == nullptr) {
    return Error{ErrorCode::kConfig, fmt::format("the plan uses machine {}", rank.machine),
                 "the cluster has no machine of this name", remedy};
  }
  MOTLEY_TRY(check_device(rank.device));
  const std::vector<std::string>& listed = machine->devices;
  std::string devices;  // the machine's devices, if this one is not among them
  if (capabilities_of(rank.device).computes != capabilities_of(*machine).computes) {
    const std::string_view label = label_of(listed.front());
    devices = label.empty() ? "real" : label;
  } else if (std::ranges::find(listed, rank.device) == listed.end()) {
    devices = fmt::format("{}", fmt::join(listed, ", "));
  }
  if (devices.empty()) return {};
  return Error{ErrorCode::kConfig,
               fmt::format("the plan uses device {} of machine {}", rank.device, rank.machine),
               fmt::format("in the cluster file its devices are {}", devices), remedy};
}

bool is_covered(const Machine& machine, const Profile& known) {
  return std::ranges::all_of(machine.devices, [&](const std::string& device) {
    return known.find(machine.name, device) != nullptr;
  });
}

// The machines that need no measuring.
Cluster covered_part(Cluster cluster, const Profile& known) {
  std::erase_if(cluster.machines,
                [&](const Machine& machine) { return !is_covered(machine, known); });
  return cluster;
}

}  // namespace

Result<void> check_plan(const Plan& plan,
                        const ModelSpec& model,
                        const Config& config,
                        const Cluster& cluster) {
  if (plan.model_hash != model.hash()) {
    return Error{ErrorCode::kConfig, "the plan is of another model",
                 "its layers or sizes differ from those of [model] in the configuration",
                 "make it again with motley plan"};
  }
  const ChunkPlan& last = plan.chunks.back();
  if (last.first_layer + last.layer_count != static_cast<int>(model.layers.size())) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the plan has {} layers", last.first_layer + last.layer_count),
                 fmt::format("the model has {}", model.layers.size()),
                 "make it again with motley plan"};
  }
  if (plan.micro_batch * plan.micro_batches != config.train.global_batch) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the plan has {} micro-batches of {} samples", plan.micro_batches,
                             plan.micro_batch),
                 fmt::format("train.global_batch is {}", config.train.global_batch),
                 "make it again with motley plan"};
  }
  MOTLEY_TRY(check_codecs(plan));
  const std::string& asked = config.compression.gradients;
  if (asked != "none" && asked != "auto" && asked != plan.gradient_codec) {
    return Error{ErrorCode::kConfig,
                 fmt::format("gradient_codec of the plan is '{}'", plan.gradient_codec),
                 fmt::format("compression.gradients is '{}'", asked),
                 "make it again with motley plan, or leave compression.gradients out"};
  }
  for (const RankPlan& rank : plan.ranks) MOTLEY_TRY(check_place(rank, cluster));
  return check_schedule(plan, model);
}

Result<void> check_planning(const PlanOptions& options,
                            const ModelSpec& model,
                            const Cluster& cluster,
                            const Profile& known) {
  MOTLEY_TRY(check_plan_options(options, model, cluster));
  const Cluster covered = covered_part(cluster, known);
  if (covered.machines.empty()) return {};
  // Other codecs are used only if they were measured.
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(model, covered, known, options.default_threads,
                                options.process_state, options.gradient_codecs.front()));
  return check_measured(options, cost);
}

void leave_out_unmeasured(Cluster& cluster, Pins& pins, const Profile& known) {
  const std::vector<std::string> excluded = pins.never;
  for (const std::string& name : excluded) {
    const Machine* machine = cluster.find(name);
    if (machine == nullptr || is_covered(*machine, known)) continue;
    std::erase_if(cluster.machines, [&](const Machine& m) { return m.name == name; });
    std::erase_if(cluster.links,
                  [&](const LinkOverride& link) { return link.from == name || link.to == name; });
    std::erase(pins.never, name);
    pins.memory_share.erase(name);
  }
}

std::set<std::string> machines_to_plan_with(const Cluster& cluster, const Pins& pins) {
  std::set<std::string> names;
  for (const Machine& machine : cluster.machines) {
    const bool excluded = std::ranges::find(pins.never, machine.name) != pins.never.end();
    if (!excluded) names.insert(machine.name);
  }
  return names;
}

}  // namespace motley
