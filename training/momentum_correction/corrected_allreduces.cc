#include "training/momentum_correction/corrected_allreduces.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "compression/codec_chain.h"
#include "pipeline/schedule/process_group.h"
#include "plan/gradient_group.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

bool leaves_machine(const Plan& plan, std::span<const Rank> ranks) {
  return ranks.size() > 1 && process_group(plan, ranks).machines.size() > 1;
}

// The parameter that has an all-reduce of its own; "" if none has.
std::string apart(const ModelSpec& model, bool tied_across_ranks) {
  return tied_across_ranks ? model.tied_pair()->parameter : std::string();
}

std::int64_t values_of(const ModelSpec& model, int layer, const std::string& without) {
  std::int64_t count = 0;
  for (const ParameterSpec& parameter : model.layers[static_cast<std::size_t>(layer)].parameters) {
    if (!parameter.tied_use && parameter.name != without) count += parameter.count();
  }
  return count;
}

std::int64_t values_of(const ModelSpec& model, const ChunkPlan& chunk, const std::string& without) {
  std::int64_t count = 0;
  for (int i = 0; i < chunk.layer_count; ++i) {
    count += values_of(model, chunk.first_layer + i, without);
  }
  return count;
}

std::int64_t tied_values(const ModelSpec& model) {
  const ModelSpec::TiedPair pair = *model.tied_pair();
  const LayerSpec& owner = model.layers[static_cast<std::size_t>(pair.owner_layer)];
  return std::ranges::find(owner.parameters, pair.parameter, &ParameterSpec::name)->count();
}

// The rank's share of a step's micro-batches.
double share_of(const ChunkPlan& chunk, const Plan& plan, Rank self) {
  const auto replica = std::ranges::find(chunk.replicas, self, &Replica::rank);
  if (replica == chunk.replicas.end()) return 0;
  return static_cast<double>(replica->micro_batches) / plan.micro_batches;
}

}  // namespace

CorrectedAllreduces corrected_allreduces(const Config& config,
                                         const Plan& plan,
                                         const ModelSpec& model,
                                         bool tied_across_ranks) {
  CorrectedAllreduces allreduces;
  allreduces.chunks.resize(plan.chunks.size(), false);
  // In a round the optimizer's momentum is needed on each island.
  if (plan.rounds) return allreduces;
  const auto chain = parse_codec_chain(plan.gradient_codec);
  const bool is_topk = chain.ok() && chain->density.has_value();
  const float momentum = is_topk ? momentum_of_senders(config, model.keeps_statistics()) : 0;
  if (momentum == 0) return allreduces;
  std::vector<bool> layers(model.layers.size(), false);
  std::int64_t values = 0;
  const std::string tied = apart(model, tied_across_ranks);
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    if (!leaves_machine(plan, replica_ranks(chunk))) continue;
    allreduces.chunks[c] = true;
    values += values_of(model, chunk, tied);
    std::fill_n(layers.begin() + chunk.first_layer, chunk.layer_count, true);
  }
  if (tied_across_ranks && leaves_machine(plan, tied_parameter_ranks(plan))) {
    allreduces.tied = true;
    values += tied_values(model);
    layers[static_cast<std::size_t>(model.tied_pair()->owner_layer)] = true;
  }
  if (values == 0) return allreduces;
  allreduces.momentum = momentum;
  allreduces.layers = std::move(layers);
  allreduces.parameter_share =
      static_cast<double>(values) / static_cast<double>(model.parameter_count());
  return allreduces;
}

CompressorOptions allreduce_compression(const CorrectedAllreduces& allreduces,
                                        const CompressionConfig& config,
                                        const Plan& plan) {
  CompressorOptions options;
  options.chain = plan.gradient_codec;
  options.error_feedback = config.error_feedback;
  options.momentum = allreduces.momentum;
  // Only topk has a density warm-up.
  const auto chain = parse_codec_chain(plan.gradient_codec);
  if (chain.ok() && chain->density) options.warmup_steps = config.warmup_steps;
  return options;
}

double local_clip(const CorrectedAllreduces& allreduces,
                  const Config& config,
                  const Plan& plan,
                  const ModelSpec& model,
                  Rank self) {
  if (allreduces.momentum == 0) return 0;
  const std::string tied = apart(model, allreduces.tied);
  double values = 0;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    if (!allreduces.chunks[c]) continue;
    values += share_of(plan.chunks[c], plan, self) *
              static_cast<double>(values_of(model, plan.chunks[c], tied));
  }
  if (allreduces.tied) {
    // Half of its gradient comes from each end of the model.
    values +=
        (share_of(plan.chunks.front(), plan, self) + share_of(plan.chunks.back(), plan, self)) / 2 *
        static_cast<double>(tied_values(model));
  }
  const double share = values / static_cast<double>(model.parameter_count());
  const auto tokens =
      static_cast<double>(config.train.global_batch) * static_cast<double>(model.tokens_per_sample);
  return config.train.clip * tokens * std::sqrt(share);
}

}  // namespace motley
