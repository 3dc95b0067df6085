#include "partitioner/report/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/text/text_table.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/report/compute_dtypes_text.h"
#include "partitioner/report/cores_text.h"
#include "partitioner/report/links_text.h"
#include "partitioner/report/plan_comparison.h"
#include "partitioner/simulate/simulator.h"
#include "plan/cluster/virtual_numbers.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// 0 for a plan without a prediction.
double share_of(double part_s, double step_s) {
  return step_s > 0 ? part_s / step_s : 0;
}

std::int64_t parameters_of(const CostModel& cost, const ChunkPlan& chunk) {
  return cost.sizes().updated_parameters(chunk.first_layer, chunk.first_layer + chunk.layer_count);
}

// Whether the constants include more than masks and position tables.
bool has_frozen_weights(const ModelSpec& model) {
  constexpr std::int64_t kShare = 100;
  const std::int64_t trained_bytes =
      model.parameter_count() * static_cast<std::int64_t>(sizeof(float));
  return model.constant_bytes() > trained_bytes / kShare;
}

// ", 98 MiB frozen"; "" if everything is trained.
std::string frozen_text(const ModelSpec& model, const CostModel& cost, const ChunkPlan& chunk) {
  const std::int64_t bytes =
      cost.sizes().constant_bytes(chunk.first_layer, chunk.first_layer + chunk.layer_count);
  if (bytes == 0 || !has_frozen_weights(model)) return "";
  return fmt::format(", {} frozen", bytes_text(static_cast<double>(bytes)));
}

// A device's computing time and memory cover all its stages, and are shown with the first of them.
std::string stage_table(const Plan& plan,
                        const ModelSpec& model,
                        const CostModel& cost,
                        const std::vector<int>& slots) {
  std::vector<TextRow> rows = {
      {"stage", "machine", "device", "layers", "parameters", "compute", "busy", "memory / limit"}};
  std::vector<std::string> first_stage(plan.ranks.size());
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    for (std::size_t i = 0; i < chunk.replicas.size(); ++i) {
      const std::size_t r = chunk.replicas[i].rank.index();
      const RankPlan& rank = plan.ranks[r];
      const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(slots[r])];
      rows.push_back({stage_name(plan, c, i), rank.machine, rank.device, layers_text(model, chunk),
                      count_text(parameters_of(cost, chunk)) + frozen_text(model, cost, chunk)});
      TextRow& row = rows.back();
      if (!first_stage[r].empty()) {
        row.push_back(fmt::format("in {}", first_stage[r]));
        continue;
      }
      first_stage[r] = row.front();
      row.push_back(seconds_text(rank.compute_s));
      row.push_back(percent_text(share_of(rank.compute_s, plan.predicted_step_s)));
      row.push_back(fmt::format("{} / {}", bytes_text(static_cast<double>(rank.memory_bytes)),
                                bytes_text(static_cast<double>(slot.memory_bytes))));
    }
  }
  return aligned_table(rows);
}

std::string machines_text(const Plan& plan, const ChunkPlan& chunk) {
  std::vector<std::string> names;
  for (const Replica& replica : chunk.replicas) {
    names.push_back(plan.ranks[replica.rank.index()].machine);
  }
  return fmt::format("{}", fmt::join(names, " + "));
}

// A boundary's slowest path between two ranks. A shared stage may also have paths within a rank.
struct BoundaryWay {
  double bytes = 0;
  double takes_s = 0;
};

std::optional<BoundaryWay> slowest_way(const Plan& plan,
                                       std::size_t chunk,
                                       const CostModel& cost,
                                       const std::vector<int>& slots) {
  const ChunkPlan& from = plan.chunks[chunk];
  const ChunkPlan& to = plan.chunks[chunk + 1];
  const BoundarySize size = cost.boundary(to.first_layer - 1, plan.micro_batch);
  std::optional<BoundaryWay> slowest;
  for (const Replica& sender : from.replicas) {
    for (const Replica& receiver : to.replicas) {
      if (sender.rank == receiver.rank) continue;
      const int from_slot = slots[sender.rank.index()];
      const double bytes = cost.frame_bytes(from_slot, size, from.codec);
      const double takes_s = cost.transfer_s(from_slot, slots[receiver.rank.index()], bytes);
      if (!slowest || takes_s > slowest->takes_s) slowest = BoundaryWay{bytes, takes_s};
    }
  }
  return slowest;
}

// One line for each boundary between ranks.
std::string link_table(const Plan& plan, const CostModel& cost, const std::vector<int>& slots) {
  std::vector<TextRow> rows = {{"link", "from", "to", "codec", "per micro-batch", "takes"}};
  for (std::size_t c = 0; c + 1 < plan.chunks.size(); ++c) {
    const auto way = slowest_way(plan, c, cost, slots);
    if (!way) continue;
    const bool is_shared =
        plan.chunks[c].replicas.size() > 1 || plan.chunks[c + 1].replicas.size() > 1;
    rows.push_back({fmt::format("{} → {}", c, c + 1), machines_text(plan, plan.chunks[c]),
                    machines_text(plan, plan.chunks[c + 1]), plan.chunks[c].codec,
                    bytes_text(way->bytes),
                    (is_shared ? "at most " : "") + seconds_text(way->takes_s)});
  }
  return rows.size() == 1 ? "" : fmt::format("\n{}", aligned_table(rows));
}

// The all-reduces, if their codec was measured.
std::string sums_text(const Plan& plan,
                      const ModelSpec& model,
                      const Cluster& cluster,
                      const Profile& profile,
                      const std::vector<int>& slots) {
  const auto cost = CostModel::make(model, cluster, profile, plan.ranks.front().threads,
                                    ResidentState{}, plan.gradient_codec);
  return cost.ok() ? allreduce_table(plan, *cost, slots) : "";
}

// The total of the stages' parameters, without the copy of a tied one.
std::string model_line(const Plan& plan, const ModelSpec& model, const CostModel& cost) {
  std::int64_t stored = 0;
  for (const ChunkPlan& chunk : plan.chunks) stored += parameters_of(cost, chunk);
  const std::int64_t copied = stored - model.parameter_count();
  std::string text = fmt::format("model     {} parameters", count_text(model.parameter_count()));
  if (has_frozen_weights(model)) {
    text = fmt::format("model     {} parameters trained; {} values ({}) are frozen",
                       count_text(model.parameter_count()), count_text(model.constant_values()),
                       bytes_text(static_cast<double>(model.constant_bytes())));
  }
  if (copied > 0) {
    text += fmt::format(", {} of them tied: stored on the first and the last stage",
                        count_text(copied));
  }
  return text + "\n";
}

// Notes beside the table: the batch splits of shared stages, and stages with activation
// checkpointing.
std::string stage_notes(const Plan& plan) {
  std::string text;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    std::vector<std::string> parts;
    for (const Replica& replica : chunk.replicas) {
      parts.push_back(fmt::format("{} takes {}", plan.ranks[replica.rank.index()].machine,
                                  replica.micro_batches));
    }
    if (parts.size() > 1) {
      text += fmt::format("shared    stage {}: {} of {} micro-batches\n", c, fmt::join(parts, ", "),
                          plan.micro_batches);
    }
    if (chunk.recompute) {
      text += fmt::format(
          "memory    stage {} uses activation checkpointing: it stores only its input and runs "
          "forward twice\n",
          c);
    }
  }
  return text;
}

// The most micro-batches with a delayed weight part of backward.
std::string queued_text(const Plan& plan) {
  const auto most = std::ranges::max_element(plan.chunks, {}, &ChunkPlan::queued_weights);
  return most->queued_weights > 0
             ? fmt::format(", weight parts of up to {} delayed", most->queued_weights)
             : "";
}

Result<void> check_codecs(const Plan& plan, const CostModel& cost) {
  for (const ChunkPlan& chunk : plan.chunks) MOTLEY_TRY(cost.check_codec(chunk.codec));
  return {};
}

std::string numbers_line(const Plan& plan) {
  std::vector<std::string> compute_dtypes;
  for (const RankPlan& rank : plan.ranks) compute_dtypes.push_back(rank.compute_dtype);
  const std::string text = compute_dtypes_text(plan, compute_dtypes);
  return text.empty() ? "" : fmt::format("dtype     {}\n", text);
}

// A note of the simulated devices without units for the precision; "" if there are none.
std::string fp32_devices_note(const Cluster& cluster, const Profile& profile) {
  const std::string wanted = profiled_precision(profile);
  if (wanted == kFp32Dtype) return "";
  std::vector<std::string> without;
  for (const Machine& machine : cluster.machines) {
    if (capabilities_of(machine).is_measured) continue;
    if (virtual_numbers(machine, wanted).compute_dtype != wanted) without.push_back(machine.name);
  }
  if (without.empty()) return "";
  const bool has_any = std::ranges::any_of(
      profile.devices, [&](const auto& d) { return d.compute_dtype == wanted; });
  return fmt::format("note      {}: no {} there, so {} planned at the rate of fp32{}\n",
                     fmt::join(without, ", "), wanted, without.size() == 1 ? "it is" : "they are",
                     has_any ? "" : "; a run on such devices alone is refused");
}

bool has_apple(const Cluster& cluster) {
  return std::ranges::any_of(cluster.machines, [](const Machine& machine) {
    return machine.device_model.starts_with("apple-");
  });
}

}  // namespace

std::string profiled_precision(const Profile& profile) {
  return profile.devices.empty() ? kFp32Dtype : profile.devices.front().precision;
}

std::string simulated_devices_text(const Cluster& cluster, const std::string& precision) {
  std::vector<std::string> names;
  for (const Machine& machine : cluster.machines) {
    if (capabilities_of(machine).is_measured) continue;
    const VirtualNumbers numbers = virtual_numbers(machine, precision);
    const VirtualSpeed& speed = numbers.speed;
    std::string rate = speed.gflops > 0 ? fmt::format("{:.0f} Gflop/s", speed.gflops)
                                        : fmt::format("{:.0f} tokens/s", speed.tokens_per_s);
    if (numbers.compute_dtype != kFp32Dtype) rate += " in " + numbers.compute_dtype;
    names.push_back(machine.device_model.empty()
                        ? fmt::format("{} ({})", machine.name, rate)
                        : fmt::format("{} ({}, {})", machine.name, machine.device_model, rate));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string layers_text(const ModelSpec& model, const ChunkPlan& chunk) {
  const auto first = static_cast<std::size_t>(chunk.first_layer);
  const auto count = static_cast<std::size_t>(chunk.layer_count);
  if (count == 1) return model.layers[first].name;
  return fmt::format("{} … {} ({})", model.layers[first].name, model.layers[first + count - 1].name,
                     count);
}

std::string schedule_text(const Plan& plan) {
  return fmt::format("{}, {} micro-batch{} of {} sample{}", plan.schedule, plan.micro_batches,
                     plan.micro_batches == 1 ? "" : "es", plan.micro_batch,
                     plan.micro_batch == 1 ? "" : "s");
}

std::string stage_name(const Plan& plan, std::size_t chunk, std::size_t replica) {
  if (plan.chunks[chunk].replicas.size() == 1) return fmt::format("{}", chunk);
  constexpr std::size_t kLetters = 26;
  return replica < kLetters ? fmt::format("{}{}", chunk, static_cast<char>('a' + replica))
                            : fmt::format("{}.{}", chunk, replica);
}

Result<std::string> explain_plan(const Plan& plan,
                                 const ModelSpec& model,
                                 const Cluster& cluster,
                                 const Profile& profile) {
  // The memory shown is the plan's, so the optimizer is not needed.
  MOTLEY_ASSIGN(const CostModel cost, CostModel::make(model, cluster, profile,
                                                      plan.ranks.front().threads, ResidentState{}));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  MOTLEY_TRY(check_codecs(plan, cost));
  const ChunkPlan& last = plan.chunks.back();
  if (last.first_layer + last.layer_count != static_cast<int>(model.layers.size())) {
    return Error{ErrorCode::kConfig, "the plan is of another model",
                 fmt::format("it ends with layer {} of {}", last.first_layer + last.layer_count,
                             model.layers.size()),
                 "plan again"};
  }
  std::string text = stage_table(plan, model, cost, slots) + link_table(plan, cost, slots) +
                     sums_text(plan, model, cluster, profile, slots);
  text += '\n';
  text += model_line(plan, model, cost);
  text += fmt::format("step      {} predicted{}, {} {}/s\n", seconds_text(plan.predicted_step_s),
                      times_label(plan), per_second_text(units_per_s(plan, model)), model.unit);
  text += fmt::format("schedule  {}", schedule_text(plan));
  const int in_flight = plan.chunks.front().in_flight;
  if (in_flight > 0) text += fmt::format(", up to {} in flight", in_flight);
  text += queued_text(plan) + "\n";
  text += cores_text(plan, cluster, profile);
  text += numbers_line(plan);
  text += links_text(plan, model, cluster);
  text += stage_notes(plan);
  if (!capabilities_of(plan).computes && !is_mixed(cluster)) {
    text += fmt::format("note      {}\n", kVirtualNotice);
  }
  if (!capabilities_of(cluster).is_measured) {
    text += fmt::format("virtual   {}: computed, not measured\n",
                        simulated_devices_text(cluster, profiled_precision(profile)));
    text += fp32_devices_note(cluster, profile);
    if (has_apple(cluster)) {
      text +=
          "note      Motley does not run on macOS yet (docs/portability.md): a plan with a Mac "
          "only shows its possible gain\n";
    }
  }
  for (const std::string& note : plan.notes) text += fmt::format("note      {}\n", note);
  return text;
}

}  // namespace motley
