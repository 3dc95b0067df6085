#include "cluster/planning/planning_options.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/toml.h"
#include "compression/codec_chain.h"
#include "compression/facts/codec_facts.h"
#include "compression/feedback/gradient_compressor.h"
#include "compression/make_codec.h"
#include "data/resident_bytes.h"
#include "run_config/optimizers.h"
#include "run_config/rounds_choice.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

// The codecs for a boundary or an all-reduce: "auto" leaves the choice to the planner. `key` is the
// configuration key of the chain.
Result<std::vector<std::string>> codecs_to_plan_with(CodecUse use,
                                                     const char* key,
                                                     const std::string& chain) {
  if (chain == "auto") {
    const AutoCodecs free = auto_codecs(use, false).front();
    return std::vector<std::string>(free.names.begin(), free.names.end());
  }
  const auto codec = make_codec(chain);
  if (codec.ok()) return std::vector<std::string>{(*codec)->name()};
  Error error = codec.error();
  return with_key(with_context(std::move(error), key), key);
}

// What "auto" may use in addition if it pays.
std::vector<CoarserCodecs> coarser_codecs(const CompressionConfig& compression) {
  std::map<double, CoarserCodecs> by_gain;
  const auto add = [&](CodecUse use, std::vector<std::string> CoarserCodecs::*to) {
    for (const AutoCodecs& group : auto_codecs(use, compression.error_feedback)) {
      if (group.least_gain == 0) continue;
      CoarserCodecs& coarser = by_gain[group.least_gain];
      coarser.least_gain = group.least_gain;
      (coarser.*to).assign(group.names.begin(), group.names.end());
    }
  };
  if (compression.gradients == "auto") add(CodecUse::kGradients, &CoarserCodecs::gradient_codecs);
  if (compression.activations == "auto") add(CodecUse::kActivations, &CoarserCodecs::codecs);
  std::vector<CoarserCodecs> all;
  for (auto& [gain, coarser] : by_gain) all.push_back(std::move(coarser));
  return all;
}

ResidentState resident_state(const Config& config, const ModelSpec& model) {
  return {.moments_per_parameter = moments_per_parameter(config.train),
          .has_residual = config.compression.error_feedback,
          .velocity = momentum_of_senders(config, model.keeps_statistics()) > 0};
}

Result<void> check_boundary_codec(const std::string& chain) {
  const auto parsed = parse_codec_chain(chain);
  if (!parsed.ok() || !parsed->for_gradients_only()) return {};
  return with_key(
      {ErrorCode::kConfig, fmt::format("compression.activations cannot be '{}'", chain),
       kWhyForGradientsOnly,
       fmt::format("set compression.activations to {}", word_list(format_names(), "or"))},
      "compression.activations");
}

// REQUIRES: a validated configuration.
Result<std::optional<RoundOptions>> round_options(const Config& config) {
  const RoundsChoice choice = *parse_rounds_choice(config.parallel.rounds);
  if (choice.is_off()) return std::optional<RoundOptions>();
  const char* const key = "compression.pseudo_gradients";
  const auto codec = make_gradient_codec({.chain = config.compression.pseudo_gradients});
  if (!codec.ok()) return with_key(codec.error(), key);
  const RoundsChoice overlap = *parse_rounds_choice(config.parallel.rounds_overlap);
  return std::optional(
      RoundOptions{.steps = choice.steps,
                   .overlap_steps = overlap.is_auto ? std::nullopt : std::optional(overlap.steps),
                   .train_steps = config.train.steps,
                   .synchronous_start = config.train.synchronous_start,
                   .warmup_steps = config.train.warmup_steps,
                   .codec = config.compression.pseudo_gradients,
                   .outer_lr = config.train.outer_lr,
                   .outer_momentum = config.train.outer_momentum});
}

}  // namespace

Result<PlanOptions> plan_options(const Config& config, const ModelSpec& model, int stages) {
  PlanOptions options;
  options.global_batch = config.train.global_batch;
  options.micro_batch = config.train.micro_batch;
  options.usual_micro_batch = usual_micro_batch(model, config.train.global_batch);
  // The micro-batch must not depend on the machines' speed if it affects the result.
  if (model.keeps_statistics() && options.micro_batch == 0) {
    options.micro_batch = options.usual_micro_batch;
  }
  options.schedule = config.parallel.schedule;
  options.stages = stages;
  options.cuts = config.parallel.cuts;
  MOTLEY_ASSIGN(options.pins, parse_pins(config.parallel.pins));
  options.default_threads = config.run.threads;
  options.replicas = config.parallel.replicas;
  options.recompute = config.parallel.recompute;
  MOTLEY_TRY(check_boundary_codec(config.compression.activations));
  MOTLEY_ASSIGN(options.codecs,
                codecs_to_plan_with(CodecUse::kActivations, "compression.activations",
                                    config.compression.activations));
  MOTLEY_ASSIGN(options.gradient_codecs,
                codecs_to_plan_with(CodecUse::kGradients, "compression.gradients",
                                    config.compression.gradients));
  options.coarser = coarser_codecs(config.compression);
  MOTLEY_ASSIGN(options.rounds, round_options(config));
  options.process_state = resident_state(config, model);
  options.process_state.data_bytes = resident_data_bytes(config.data, model.sample);
  return options;
}

}  // namespace motley
