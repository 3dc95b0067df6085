#include "cluster/planning/planning_options.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "compression/codec_chain.h"
#include "compression/make_codec.h"
#include "data/resident_bytes.h"
#include "run_config/optimizers.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

// The codecs for a boundary or an all-reduce: "auto" leaves the choice to the planner. `key` is the
// configuration key of the chain.
Result<std::vector<std::string>> codecs_to_plan_with(const char* key, const std::string& chain) {
  if (chain == "auto") return std::vector<std::string>{"none", "fp16"};
  const auto codec = make_codec(chain);
  if (codec.ok()) return std::vector<std::string>{(*codec)->name()};
  Error error = codec.error();
  return with_key(with_context(std::move(error), key), key);
}

// What "auto" may use in addition if it pays: docs/compression.md describes the effect of each on
// learning. In an all-reduce, error feedback compensates for the error of int4; activations have
// none.
std::vector<CoarserCodecs> coarser_codecs(const CompressionConfig& compression) {
  constexpr double kGain = 0.03;
  constexpr double kGainForLoss = 0.15;
  std::vector<CoarserCodecs> coarser = {{{}, {}, kGain}};
  if (compression.gradients == "auto") {
    coarser.front().gradient_codecs.push_back("int8");
    if (compression.error_feedback) coarser.front().gradient_codecs.push_back("int4");
  }
  if (compression.activations == "auto") {
    coarser.front().codecs.push_back("int8");
    coarser.push_back({{"int4"}, {}, kGainForLoss});
  }
  return coarser;
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
       kWhyForGradientsOnly, "set compression.activations to none, fp16, bf16, int8 or int4"},
      "compression.activations");
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
                codecs_to_plan_with("compression.activations", config.compression.activations));
  MOTLEY_ASSIGN(options.gradient_codecs,
                codecs_to_plan_with("compression.gradients", config.compression.gradients));
  options.coarser = coarser_codecs(config.compression);
  options.process_state = resident_state(config, model);
  options.process_state.data_bytes = resident_data_bytes(config.data, model.sample);
  return options;
}

}  // namespace motley
