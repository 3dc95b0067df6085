#include "cluster/run/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cluster/run/check_plan.h"
#include "cluster/run/resume.h"
#include "compression/codec_chain.h"
#include "data/held_bytes.h"
#include "job/config_io.h"
#include "job/optimizers.h"
#include "partitioner/advise/remedy.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

// What a boundary or a sum may be compressed with: "auto" leaves it to the planner. `key` is the
// one of the configuration that says so.
Result<std::vector<std::string>> codecs_to_plan_with(const char* key, const std::string& chain) {
  if (chain == "auto") return std::vector<std::string>{"none", "fp16"};
  const auto codec = make_codec(chain);
  if (codec.ok()) return std::vector<std::string>{(*codec)->name()};
  Error error = codec.error();
  return with_key(with_context(std::move(error), key), key);
}

// What "auto" may take besides where it pays: docs/compression.md has what each does to learning.
// Sums make good what int4 leaves out, by error feedback; activations cannot.
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

KeptState kept_state(const Config& config, const ModelSpec& model) {
  return {.moments_per_parameter = moments_per_parameter(config.train),
          .unsent = config.compression.error_feedback,
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

// Whether both ask the planner for the same.
bool ask_alike(const Config& a, const Config& b) {
  const Json wishes[] = {config_to_json(a), config_to_json(b)};
  const auto same = [&](const char* section) { return wishes[0][section] == wishes[1][section]; };
  return same("parallel") && same("compression") && a.train.global_batch == b.train.global_batch &&
         a.train.micro_batch == b.train.micro_batch && a.run.threads == b.run.threads;
}

// The plan that the run had, where it can be carried out still and nothing else is asked for.
std::optional<Plan> plan_so_far(const SavedPlanning& saved,
                                const PreparedRun& run,
                                const PlanOptions& options) {
  auto plan = read_plan(run.folder.plan_path());
  const bool is_wanted = plan.ok() && ask_alike(saved.config, run.config) &&
                         (options.stages == 0 || options.stages == plan->rank_count()) &&
                         !plan_change(*saved.mark, plan_mark(*plan));
  if (!is_wanted || !check_plan(*plan, run.model, run.config, run.cluster)) return {};
  for (RankPlan& rank : plan->ranks) {
    const DeviceProfile* const device = run.profile.find(rank.machine, rank.device);
    if (device != nullptr) rank.numbers = device->numbers;
  }
  return std::move(plan).value();
}

}  // namespace

Result<Plan> plan_like(const SavedPlanning& saved,
                       const PreparedRun& run,
                       const PlanOptions& options) {
  if (saved.mark) {
    auto planning = plan_in_full(run.model, run.cluster, run.profile,
                                 options_like(*saved.mark, run.config, options));
    if (planning.ok() && !rounding_change(*saved.mark, run.folder, planning->plan)) {
      return std::move(planning->plan);
    }
    if (auto plan = plan_so_far(saved, run, options)) return *std::move(plan);
    if (planning.ok()) return std::move(planning->plan);
  }
  MOTLEY_ASSIGN(Planning planning, plan_or_remedy({run.model, run.cluster, run.profile, options}));
  return std::move(planning.plan);
}

std::optional<std::string> rounding_change(const PlanMark& saved,
                                           const RunFolder& folder,
                                           const Plan& plan) {
  const PlanMark now = plan_mark(plan);
  if (auto change = plan_change(saved, now)) return change;
  if (std::ranges::max(now.replicas) == 1) return {};
  // A checkpoint does not keep which replicas share what.
  const auto before = read_plan(folder.plan_path());
  if (!before.ok() || sums_alike(*before, plan)) return {};
  return "other layers or other parts of the batch on its replicas";
}

void tell_change(const PlanMark& saved, const PreparedRun& run, const Log& log) {
  const auto change = rounding_change(saved, run.folder, run.plan);
  if (!change) return;
  log.warn(fmt::format(
      "the run goes on with {}, because the configuration or the machines are others than before; "
      "sums are rounded otherwise",
      *change));
}

Result<PlanOptions> plan_options(const Config& config, const ModelSpec& model, int stages) {
  PlanOptions options;
  options.global_batch = config.train.global_batch;
  options.micro_batch = config.train.micro_batch;
  options.usual_micro_batch = usual_micro_batch(model, config.train.global_batch);
  // Not by the machines' speed, where it decides what is learned.
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
  options.kept = kept_state(config, model);
  options.kept.data_bytes = held_data_bytes(config.data, model.sample);
  return options;
}

}  // namespace motley
