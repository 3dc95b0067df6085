#include "cluster/run/prepare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "cluster/examine/automatic_devices.h"
#include "cluster/examine/measure.h"
#include "cluster/examine/precision_check.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/workers.h"
#include "cluster/run/check_plan.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/resume.h"
#include "compression/codec_chain.h"
#include "data/source.h"
#include "job/config_io.h"
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
  error.what = fmt::format("{}: {}", key, error.what);
  return error;
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

Result<void> check_boundary_codec(const std::string& chain) {
  const auto parsed = parse_codec_chain(chain);
  if (!parsed.ok() || !parsed->for_gradients_only()) return {};
  return Error{ErrorCode::kConfig, fmt::format("compression.activations cannot be '{}'", chain),
               "topk and lowrank leave out most of a message, which only sums of gradients send "
               "later",
               "set compression.activations to none, fp16, bf16, int8 or int4"};
}

// The data is read by the stage with the first layers, initial weights by all. When all are started
// here both must be here, so that a mistake shows before anything is measured. Nothing when they
// are not.
Result<std::optional<DataIdentity>> check_data(const TrainingRequest& request,
                                               const ModelSpec& model,
                                               bool resumes) {
  for (const Machine& machine : request.cluster.machines) {
    if (!machine.shell.empty()) return std::optional<DataIdentity>();
  }
  const Config config = with_absolute_paths(request.config);
  MOTLEY_ASSIGN(const auto source, open_source(config.data, model.sample, config.train.seed));
  if (!config.model.init_from.empty() && !resumes) {
    MOTLEY_ASSIGN(const auto weights, CheckpointReader::open(config.model.init_from));
  }
  return std::optional(source->identity());
}

// The machines that the run may use; a transport that would be refused between them is refused
// before anything is measured, whether the plan needs it or not.
Result<void> check_machines(const TrainingRequest& request,
                            const PreparedRun& run,
                            const PlanOptions& options) {
  const Cluster& cluster = run.cluster;
  const std::set<std::string> machines =
      request.plan ? machines_in_use(*request.plan) : machines_to_plan_with(cluster, options.pins);
  MOTLEY_ASSIGN([[maybe_unused]] const auto transport,
                choose_transport(cluster, machines, request.config.comm));
  return check_usable(cluster, machines, run.model, request.stage_program);
}

// What "auto" stands for, and whether there are devices enough.
Result<void> settle_devices(const TrainingRequest& request,
                            PreparedRun& run,
                            const PlanOptions& options,
                            const Log& log) {
  if (std::ranges::none_of(run.cluster.machines, has_automatic_devices)) return {};
  MOTLEY_TRY(settle_by_asking(run.cluster, request.stage_program,
                              request.config.comm.start_timeout_s, log));
  return check_planning(options, run.model, run.cluster, request.known_profile);
}

// Whether there is something to go on from. A run that ended before its first checkpoint begins
// anew, whether it is asked to resume or not.
Result<bool> goes_on(const TrainingRequest& request, const RunFolder& folder, const Log& log) {
  if (!request.resume) return false;
  MOTLEY_ASSIGN(const bool is_run, path_exists(folder.config_path()));
  if (!is_run || !list_checkpoints(folder.dir()).empty()) return true;
  MOTLEY_TRY(require_all_count(folder.dir()));
  log.info(
      fmt::format("{} holds no checkpoint yet: the run begins with step 1", folder.dir().string()));
  return false;
}

// A run that is there already is not written over; the person may have meant to go on with it.
Error with_resume(Error error, const TrainingRequest& request) {
  if (error.code != ErrorCode::kConfig) return error;
  if (is_virtual(request.cluster)) {
    error.remedy = "choose another folder by --run: a rehearsal cannot be resumed";
  } else if (!request.commands.resume.empty()) {
    error.remedy += "\n" + request.commands.resume;
  }
  return error;
}

// Takes the folder for this launch, before anything in it is looked at for long or changed.
Result<void> take_folder(PreparedRun& run,
                         const TrainingRequest& request,
                         bool resumes,
                         const Log& log) {
  MOTLEY_ASSIGN(const bool exists, path_exists(run.folder.dir()));
  if (resumes && !exists) return run.folder.newest_checkpoint().error();
  MOTLEY_TRY(run.folder.make());
  MOTLEY_ASSIGN(RunLock lock, RunLock::take(run.folder.dir(), log));
  run.lock = std::make_unique<RunLock>(std::move(lock));
  if (!resumes) {
    Result<void> created = run.folder.create(run.lock->number());
    if (!created.ok()) return with_resume(std::move(created).error(), request);
  }
  // Nobody else writes here any more, so whatever is half-written is of a launch that has gone.
  return prune_checkpoints(run.folder.dir(), /*rule=*/{}, run.lock->launch());
}

// What a checkpoint tells of how its run was planned.
struct SavedPlanning {
  std::optional<PlanMark> mark;  // what decided how sums were rounded; older checkpoints lack it
  Config config;
};

// What the run would do otherwise than so far is asked back before anything is started.
Result<void> check_changes(const SavedPlanning& saved,
                           const PreparedRun& run,
                           const TrainingRequest& request,
                           const Log& log) {
  std::vector<std::string> changes = changes_of(saved.config, run.config);
  if (saved.mark && request.plan) {
    const auto change = plan_change(*saved.mark, plan_mark(*request.plan));
    if (change) changes.push_back("the plan has " + *change);
  }
  if (!request.allow_changes) return refuse_changes(changes);
  if (!changes.empty()) log.warn(fmt::format("the run goes on with {}", fmt::join(changes, ", ")));
  return {};
}

// Where the run goes on, once everything shows that it is the same run, and with what it chose.
Result<SavedPlanning> resume(PreparedRun& run,
                             const std::optional<DataIdentity>& data,
                             const TrainingRequest& request,
                             const Log& log) {
  MOTLEY_ASSIGN(run.resume_from, run.folder.newest_checkpoint());
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(run.resume_from->folder));
  const CheckpointState& saved = manifest.state;
  MOTLEY_TRY(check_resume(saved, run.resume_from->folder, run.config, run.model));
  run.first_step = saved.step + 1;
  SavedPlanning planning{.mark = saved.plan};
  MOTLEY_ASSIGN(planning.config,
                saved_config_from_json(manifest.config, run.resume_from->folder.string()));
  // Checkpoints of earlier versions have the plan's micro-batch in the mark alone.
  if (saved.plan) planning.config.train.micro_batch = saved.plan->micro_batch;
  run.config = with_choices_of(planning.config, run.config);
  if (run.config.run.threads == 0) {  // machines that differ in this
    const auto plan = read_plan(run.folder.plan_path());
    if (plan.ok()) run.cluster = with_threads_of(*plan, std::move(run.cluster));
  }
  MOTLEY_TRY(check_changes(planning, run, request, log));
  if (!request.allow_changes) run.saved_data = saved.data;
  if (run.saved_data && data) MOTLEY_TRY(check_same_data(*run.saved_data, *data, run.config.data));
  return planning;
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

// A resumed run keeps what decides how its sums are rounded, as far as a plan with that exists.
Result<Plan> plan_like(const SavedPlanning& saved,
                       const PreparedRun& run,
                       const PlanOptions& options) {
  if (saved.mark) {
    auto planning = plan_in_full(run.model, run.cluster, run.profile,
                                 options_like(*saved.mark, run.config, options));
    if (planning.ok() && !plan_change(*saved.mark, plan_mark(planning->plan))) {
      return std::move(planning->plan);
    }
    if (auto plan = plan_so_far(saved, run, options)) return *std::move(plan);
    if (planning.ok()) return std::move(planning->plan);
  }
  MOTLEY_ASSIGN(Planning planning, plan_or_remedy({run.model, run.cluster, run.profile, options}));
  return std::move(planning.plan);
}

// What the run so far did otherwise is said: from here on its numbers differ by rounding.
void tell_change(const PlanMark& saved, const PreparedRun& run, const Log& log) {
  const auto change = plan_change(saved, plan_mark(run.plan));
  if (!change) return;
  log.warn(fmt::format(
      "the run goes on with {}, because the configuration or the machines are others than before; "
      "sums are rounded otherwise",
      *change));
}

// 0 where they differ: then the plan alone tells.
int threads_of_all(const Plan& plan) {
  const int threads = plan.ranks.front().threads;
  const auto has_as_many = [&](const RankPlan& rank) { return rank.threads == threads; };
  return std::ranges::all_of(plan.ranks, has_as_many) ? threads : 0;
}

// A rehearsal reads no data and trains nothing, so there is nothing to save or to go on from.
Result<void> check_rehearsal(const TrainingRequest& request, const Log& log) {
  if (request.resume) {
    return Error{ErrorCode::kUsage, "a run on virtual devices cannot be resumed",
                 "it trains nothing and saves no checkpoints", "start it afresh by --run"};
  }
  log.info(
      fmt::format("{}; no data is read, no loss computed, no checkpoint saved", kVirtualNotice));
  return {};
}

}  // namespace

std::int64_t last_step_of(const PreparedRun& run, const TrainingRequest& request) {
  const std::int64_t all = run.config.train.steps;
  return request.stop_after > 0 ? std::min(request.stop_after, all) : all;
}

Result<void> check_initial_weights_here(const Config& config, const KeyOrigins& origins) {
  if (config.model.init_from.empty()) return {};
  MOTLEY_ASSIGN(const bool exists, path_exists(config.model.init_from));
  if (!exists) return {};
  MOTLEY_ASSIGN(const auto reader, CheckpointReader::open(config.model.init_from));
  MOTLEY_ASSIGN(const WeightsOutline outline, reader.outline());
  return check_weights(config.model, origins, outline.tensors, outline.config, outline.source);
}

Config without_initial_weights(Config config) {
  config.model.init_from.clear();
  return config;
}

Result<void> check_usable(const Cluster& cluster,
                          const std::set<std::string>& machines,
                          const ModelSpec& model,
                          const std::filesystem::path& program) {
  MOTLEY_TRY(check_reachable(cluster, machines, program));
  const auto package = model.package_mark();
  return package ? check_package_seen(cluster, machines, *package) : Result<void>();
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
  options.moments_per_parameter = moments_per_parameter(config.train);
  return options;
}

namespace {

int stages_asked_for(const TrainingRequest& request) {
  const int cuts = static_cast<int>(request.config.parallel.cuts.size());
  return std::max(request.stages, cuts + 1);
}

}  // namespace

Result<PreparedRun> prepare_run(const TrainingRequest& request, Log& log) {
  PreparedRun run;
  run.config = request.config;
  run.cluster = request.cluster;
  run.folder = RunFolder(request.config.run.dir);
  MOTLEY_TRY(validate_config(run.config));
  MOTLEY_ASSIGN(run.model, describe_model(run.config.model));
  MOTLEY_ASSIGN(PlanOptions options, plan_options(run.config, run.model, request.stages));
  if (request.plan) {
    settle_by_plan(run.cluster, *request.plan);
    MOTLEY_TRY(check_plan(*request.plan, run.model, run.config, run.cluster));
  } else {
    settle_by_profile(run.cluster, request.known_profile);
    MOTLEY_TRY(check_planning(options, run.model,
                              with_any_devices(run.cluster, stages_asked_for(request)),
                              request.known_profile));
    leave_out_unmeasured(run.cluster, options.pins, request.known_profile);
  }
  MOTLEY_ASSIGN(const bool is_resumed, goes_on(request, run.folder, log));
  std::optional<DataIdentity> data;
  if (is_virtual(request.cluster)) {
    MOTLEY_TRY(check_rehearsal(request, log));
  } else {
    if (!is_resumed) MOTLEY_TRY(check_initial_weights_here(run.config, request.origins));
    MOTLEY_ASSIGN(data, check_data(request, run.model, is_resumed));
  }

  if (request.dry_run) {
    if (!is_resumed) MOTLEY_TRY(run.folder.check_new());
  } else {
    MOTLEY_TRY(take_folder(run, request, is_resumed, log));
    MOTLEY_TRY(make_folders(run.folder.log_dir()));
    MOTLEY_TRY(log.keep_in(run.folder.log_dir() / "motley.log"));
  }
  SavedPlanning saved;
  if (is_resumed) {
    MOTLEY_ASSIGN(saved, resume(run, data, request, log));
    Pins pins = std::move(options.pins);  // without machines that were left out
    MOTLEY_ASSIGN(options, plan_options(run.config, run.model, request.stages));
    options.pins = std::move(pins);
  }
  if (request.stop_after > 0 && request.stop_after < run.first_step) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--stop-after {} is in the past", request.stop_after),
                 fmt::format("the next step is {}", run.first_step), ""};
  }
  if (!request.dry_run) MOTLEY_TRY(check_can_write(run.folder.config_path()));
  MOTLEY_TRY(check_machines(request, run, options));
  MOTLEY_TRY(settle_devices(request, run, options, log));

  if (request.plan.has_value()) {
    run.plan = *request.plan;
    const auto other = plan_of_other_precision(run.config.train.precision, run.plan);
    if (other) log.warn(*other);
  } else {
    const Config& config = is_resumed ? without_initial_weights(run.config) : run.config;
    const MeasureOptions measuring{.anew = request.measure_anew,
                                   .quiet = request.quiet,
                                   .least_bytes = least_memory_bytes(
                                       run.model.parameter_count(), options.moments_per_parameter)};
    MOTLEY_ASSIGN(run.profile, measure_cluster(run.cluster, config, request.stage_program,
                                               request.known_profile, measuring, log));
    warn_of(run.profile, log);
    MOTLEY_ASSIGN(run.plan, plan_like(saved, run, options));
    MOTLEY_TRY(check_plan_precision(run.config.train.precision, run.plan, run.profile));
    if (!request.dry_run) {
      MOTLEY_TRY(run.lock->confirm());
      MOTLEY_TRY(run.folder.write_profile(run.profile));
    }
    if (saved.mark) tell_change(*saved.mark, run, log);
  }
  run.config.train.micro_batch = run.plan.micro_batch;
  run.config.run.threads = threads_of_all(run.plan);
  MOTLEY_ASSIGN(run.transport,
                choose_transport(run.cluster, machines_in_use(run.plan), run.config.comm));
  if (request.dry_run) return run;
  // A lower number of checkpoints to keep makes room before the next save needs it. The newest one
  // was checked, and nothing is left that could refuse the run.
  MOTLEY_TRY(
      prune_checkpoints(run.folder.dir(), keep_rule(run.config.checkpoint), run.lock->launch()));
  MOTLEY_TRY(run.folder.write_config(run.config));
  MOTLEY_TRY(run.folder.write_plan(run.plan));
  return run;
}

}  // namespace motley
