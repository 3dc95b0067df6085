#include "partitioner/advise/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "partitioner/advise/text_table.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/simulate/simulator.h"

namespace motley {
namespace {

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
  std::vector<TextRow> rows = {
      {"stage", "machine", "device", "layers", "parameters", "compute", "busy", "memory / limit"}};
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    for (std::size_t i = 0; i < chunk.replicas.size(); ++i) {
      const std::size_t r = chunk.replicas[i].rank.index();
      const RankPlan& rank = plan.ranks[r];
      const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(slots[r])];
      rows.push_back({stage_name(plan, c, i), rank.machine, rank.device, layers_text(model, chunk),
                      count_text(parameters_of(model, chunk)), seconds_text(rank.compute_s),
                      percent_text(share_of(rank.compute_s, plan.predicted_step_s)),
                      fmt::format("{} / {}", bytes_text(static_cast<double>(rank.memory_bytes)),
                                  bytes_text(static_cast<double>(slot.memory_bytes)))});
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

// One line for each boundary between ranks; of a shared stage the first replica's link.
std::string link_table(const Plan& plan, const CostModel& cost, const std::vector<int>& slots) {
  std::vector<TextRow> rows = {{"link", "from", "to", "codec", "per micro-batch", "takes"}};
  for (std::size_t c = 0; c + 1 < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    const ChunkPlan& next = plan.chunks[c + 1];
    const Rank from = chunk.replicas.front().rank;
    const Rank to = next.replicas.front().rank;
    if (from == to) continue;
    const int from_slot = slots[from.index()];
    const double floats = cost.boundary_floats(next.first_layer - 1, plan.micro_batch);
    const double bytes = cost.frame_bytes(from_slot, floats, chunk.codec);
    rows.push_back({fmt::format("{} → {}", c, c + 1), machines_text(plan, chunk),
                    machines_text(plan, next), chunk.codec, bytes_text(bytes),
                    seconds_text(cost.transfer_s(from_slot, slots[to.index()], bytes))});
  }
  return rows.size() == 1 ? "" : fmt::format("\n{}", aligned_table(rows));
}

// What the table does not show: who takes which part of a shared stage, and who computes twice.
std::string stage_notes(const Plan& plan) {
  std::string text;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    std::vector<std::string> shares;
    for (const Replica& replica : chunk.replicas) {
      shares.push_back(fmt::format("{} takes {}", plan.ranks[replica.rank.index()].machine,
                                   replica.micro_batches));
    }
    if (shares.size() > 1) {
      text += fmt::format("shared    stage {}: {} of {} micro-batches\n", c,
                          fmt::join(shares, ", "), plan.micro_batches);
    }
    if (chunk.recompute) {
      text += fmt::format("memory    stage {} keeps only its input and runs forward twice\n", c);
    }
  }
  return text;
}

// Of how many micro-batches the stages put the weight part of backward off, at most.
std::string queued_text(const Plan& plan) {
  const auto most = std::ranges::max_element(plan.chunks, {}, &ChunkPlan::queued_weights);
  return most->queued_weights > 0
             ? fmt::format(", weight parts of up to {} put off", most->queued_weights)
             : "";
}

Result<void> check_codecs(const Plan& plan, const CostModel& cost) {
  for (const ChunkPlan& chunk : plan.chunks) MOTLEY_TRY(cost.check_codec(chunk.codec));
  return {};
}

}  // namespace

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
  // The memory that it tells of is the plan's, so that no optimizer is asked for.
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(model, cluster, profile, plan.ranks.front().threads,
                                /*moments_per_parameter=*/0));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  MOTLEY_TRY(check_codecs(plan, cost));
  const ChunkPlan& last = plan.chunks.back();
  if (last.first_layer + last.layer_count != static_cast<int>(model.layers.size())) {
    return Error{ErrorCode::kConfig, "the plan is of another model",
                 fmt::format("it ends with layer {} of {}", last.first_layer + last.layer_count,
                             model.layers.size()),
                 "plan again"};
  }
  std::string text = stage_table(plan, model, cost, slots) + link_table(plan, cost, slots);
  const double tokens =
      static_cast<double>(model.tokens_per_sample) * plan.micro_batch * plan.micro_batches;
  text += fmt::format("\nstep      {} predicted{}, {:.0f} tokens/s\n",
                      seconds_text(plan.predicted_step_s), is_virtual(plan) ? " (virtual)" : "",
                      share_of(tokens, plan.predicted_step_s));
  text += fmt::format("schedule  {}, {} micro-batches of {} samples", plan.schedule,
                      plan.micro_batches, plan.micro_batch);
  const int in_flight = plan.chunks.front().in_flight;
  if (in_flight > 0) text += fmt::format(", up to {} in flight", in_flight);
  text += queued_text(plan) + "\n";
  text += stage_notes(plan);
  if (is_virtual(plan)) text += fmt::format("note      {}\n", kVirtualNotice);
  for (const std::string& note : plan.notes) text += fmt::format("note      {}\n", note);
  return text;
}

}  // namespace motley
