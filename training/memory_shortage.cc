#include "training/memory_shortage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "models/spec/layer_memory.h"
#include "plan/quantity_text.h"
#include "run_config/optimizers.h"

namespace motley {
namespace {

std::string size_text(std::int64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

// The part of the model that a rank holds.
struct Held {
  std::vector<std::string> layers;  // "embed to block1.mlp", for each chunk
  std::int64_t persistent_bytes = 0;
  std::int64_t sample_bytes = 0;  // that one sample occupies from forward to backward
};

Held held_by(const ModelSpec& model, const Plan& plan, Rank self, int moments_per_parameter) {
  Held held;
  for (const ChunkPlan& chunk : plan.chunks) {
    if (!chunk.is_on(self)) continue;
    const int last = chunk.first_layer + chunk.layer_count - 1;
    const auto name = [&](int layer) { return model.layers[static_cast<std::size_t>(layer)].name; };
    held.layers.push_back(chunk.layer_count == 1
                              ? name(last)
                              : fmt::format("{} to {}", name(chunk.first_layer), name(last)));
    held.persistent_bytes +=
        persistent_memory(model, chunk.first_layer, last + 1, moments_per_parameter).bytes();
    for (int layer = chunk.first_layer; layer <= last; ++layer) {
      if (!chunk.recompute) held.sample_bytes += layer_memory(model, layer).saved_bytes;
    }
  }
  return held;
}

// "" if no smaller micro-batch is known to fit.
std::string smaller_batch(std::int64_t left_bytes, std::int64_t sample_bytes, int micro_batch) {
  if (micro_batch == 1 || sample_bytes == 0 || left_bytes < sample_bytes) return "";
  const std::int64_t fitting = std::min<std::int64_t>(left_bytes / sample_bytes, micro_batch / 2);
  return fmt::format("set train.micro_batch to {} or less, which fits beside the layers; ",
                     fitting);
}

// Suggests moving layers to other machines; "" if the plan uses no other machine.
std::string fewer_layers(const Plan& plan, const RankPlan& place) {
  const bool is_alone = std::ranges::all_of(
      plan.ranks, [&](const RankPlan& rank) { return rank.machine == place.machine; });
  if (is_alone) return "";
  return fmt::format("give it fewer layers (parallel.pins = [\"{} at most 70% memory\"]), ",
                     place.machine);
}

// "" if the rank already recomputes.
std::string recomputation(const Plan& plan, Rank self) {
  const bool recomputes = std::ranges::any_of(
      plan.chunks, [&](const ChunkPlan& chunk) { return chunk.is_on(self) && chunk.recompute; });
  return recomputes ? "" : "set parallel.recompute = \"auto\", ";
}

}  // namespace

Error error_of(const MemoryShortage& shortage,
               const TrainConfig& train,
               const ModelSpec& model,
               const Plan& plan,
               Rank self) {
  const RankPlan& place = plan.ranks[self.index()];
  const Held held = held_by(model, plan, self, moments_per_parameter(train));
  const std::int64_t micro_bytes = held.sample_bytes * plan.micro_batch;
  const std::string had = shortage.had_bytes == 0 ? std::string("the free memory is not known")
                                                  : fmt::format("{} were free at its start",
                                                                size_text(shortage.had_bytes));
  std::string cause = fmt::format(
      "the layers {} take {} with their gradients and moments, each micro-batch of {} stores up to "
      "{} more until its backward, and {}",
      fmt::join(held.layers, " and "), size_text(held.persistent_bytes), plan.micro_batch,
      size_text(micro_bytes), had);
  if (place.memory_bytes > 0) {
    cause += fmt::format("; the plan assumes {}", size_text(place.memory_bytes));
  }
  return {
      ErrorCode::kInfeasible,
      fmt::format("{} has too little memory for {}", place.device, shortage.during),
      fmt::format("{} ({})", cause, shortage.said),
      fmt::format("{}end other programs on the device, {}{}or spread the model over more devices",
                  smaller_batch(shortage.had_bytes - held.persistent_bytes, held.sample_bytes,
                                plan.micro_batch),
                  fewer_layers(plan, place), recomputation(plan, self))};
}

}  // namespace motley
