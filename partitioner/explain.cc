#include <fmt/format.h>

#include <algorithm>

#include "partitioner/cost_model.h"
#include "partitioner/planner.h"
#include "partitioner/simulator.h"

namespace motley {
namespace {

using Row = std::vector<std::string>;

std::string bytes_text(std::int64_t count) {
  const auto bytes = static_cast<double>(count);
  constexpr double kKib = 1024;
  constexpr double kMib = kKib * 1024;
  constexpr double kGib = kMib * 1024;
  if (bytes >= kGib) return fmt::format("{:.2f} GiB", bytes / kGib);
  if (bytes >= kMib) return fmt::format("{:.1f} MiB", bytes / kMib);
  return fmt::format("{:.1f} KiB", bytes / kKib);
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string count_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1'000'000) return fmt::format("{:.2f} M", value / 1e6);
  if (count >= 1'000) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{}", count);
}

// The number of characters on screen: UTF-8 continuation bytes take no place.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      if (c + 1 < row.size()) line.append(widths[c] - width_of(row[c]) + 2, ' ');
    }
    text += line + '\n';
  }
  return text;
}

// 0 for a plan without a prediction.
double share_of(double part_s, double step_s) {
  return step_s > 0 ? part_s / step_s : 0;
}

std::string layers_text(const ModelSpec& model, const ChunkPlan& chunk) {
  const auto first = static_cast<std::size_t>(chunk.first_layer);
  const auto count = static_cast<std::size_t>(chunk.layer_count);
  if (count == 1) return model.layers[first].name;
  return fmt::format("{} … {} ({})", model.layers[first].name, model.layers[first + count - 1].name,
                     count);
}

std::int64_t parameters_of(const ModelSpec& model, const ChunkPlan& chunk) {
  std::int64_t parameters = 0;
  for (int l = chunk.first_layer; l < chunk.first_layer + chunk.layer_count; ++l) {
    parameters += model.layers[static_cast<std::size_t>(l)].parameter_count();
  }
  return parameters;
}

std::string stage_table(const Plan& plan,
                        const ModelSpec& model,
                        const CostModel& cost,
                        const std::vector<int>& slots) {
  std::vector<Row> rows = {
      {"stage", "machine", "device", "layers", "parameters", "compute", "busy", "memory / limit"}};
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    const RankPlan& rank = plan.ranks[chunk.replicas.front().rank.index()];
    const auto slot = static_cast<std::size_t>(slots[chunk.replicas.front().rank.index()]);
    rows.push_back(
        {fmt::format("{}", c), rank.machine, rank.device, layers_text(model, chunk),
         count_text(parameters_of(model, chunk)), seconds_text(rank.compute_s),
         fmt::format("{:.0f} %", 100 * share_of(rank.compute_s, plan.predicted_step_s)),
         bytes_text(rank.memory_bytes) + " / " + bytes_text(cost.slots()[slot].memory_bytes)});
  }
  return aligned(rows);
}

// One line for each boundary between two ranks.
std::string link_table(const Plan& plan, const CostModel& cost, const std::vector<int>& slots) {
  std::vector<Row> rows = {{"link", "from", "to", "codec", "per micro-batch", "on the wire"}};
  for (std::size_t c = 0; c + 1 < plan.chunks.size(); ++c) {
    const Rank from = plan.chunks[c].replicas.front().rank;
    const Rank to = plan.chunks[c + 1].replicas.front().rank;
    if (from == to) continue;
    const int boundary = plan.chunks[c + 1].first_layer - 1;
    const int from_slot = slots[from.index()];
    const double bytes = cost.wire_bytes(
        from_slot, cost.boundary_floats(boundary, plan.micro_batch), plan.chunks[c].codec);
    rows.push_back({fmt::format("{} → {}", c, c + 1), plan.ranks[from.index()].machine,
                    plan.ranks[to.index()].machine, plan.chunks[c].codec,
                    bytes_text(static_cast<std::int64_t>(bytes)),
                    seconds_text(cost.transfer_s(from_slot, slots[to.index()], bytes))});
  }
  return rows.size() == 1 ? "" : "\n" + aligned(rows);
}

}  // namespace

std::string explain_plan(const Plan& plan,
                         const ModelSpec& model,
                         const Cluster& cluster,
                         const Profile& profile) {
  const auto cost = CostModel::make(model, cluster, profile, plan.ranks.front().threads);
  if (!cost.ok()) return describe(cost.error());
  const auto slots = slots_of_ranks(plan, *cost);
  if (!slots.ok()) return describe(slots.error());
  const ChunkPlan& last = plan.chunks.back();
  if (last.first_layer + last.layer_count != static_cast<int>(model.layers.size())) {
    return describe({ErrorCode::kConfig, "the plan is of another model", "", "plan again"});
  }
  std::string text = stage_table(plan, model, *cost, *slots) + link_table(plan, *cost, *slots);
  const double tokens =
      static_cast<double>(model.tokens_per_sample) * plan.micro_batch * plan.micro_batches;
  text += fmt::format("\nstep      {} predicted, {:.0f} tokens/s\n",
                      seconds_text(plan.predicted_step_s), share_of(tokens, plan.predicted_step_s));
  text += fmt::format("schedule  {}, {} micro-batches of {} samples\n", plan.schedule,
                      plan.micro_batches, plan.micro_batch);
  for (const std::string& note : plan.notes) text += "note      " + note + "\n";
  return text;
}

}  // namespace motley
