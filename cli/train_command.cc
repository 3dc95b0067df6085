// motley train, and the training of every command: a run, on this machine or on several.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/system/files.h"
#include "base/system/non_blocking_writer.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/local_machine.h"
#include "cli/run_commands.h"
#include "cli/train_messages.h"
#include "cli/train_options.h"
#include "cli/training.h"
#include "cluster/launch/workers.h"
#include "cluster/run/completed_run.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"
#include "cluster/supervisor/begin_run.h"
#include "cluster/supervisor/supervisor.h"
#include "partitioner/report/explain.h"
#include "record/run_folder.h"
#include "record/run_report.h"

namespace motley {
namespace {

constexpr std::int64_t kStopAfterMax = std::int64_t{1} << 40;

LogLevel log_level(const Arguments& arguments) {
  if (arguments.has("verbose")) return LogLevel::kDebug;
  return arguments.has("quiet") ? LogLevel::kWarn : LogLevel::kInfo;
}

// Whether the command starts a run or continues it, as a service or another launcher needs.
bool resumes_by_itself(const Arguments& arguments) {
  return arguments.has("auto-resume") || arguments.has("from-env");
}

Result<TrainingRequest> read_request(const Arguments& arguments,
                                     bool others_join,
                                     ResolvedConfig& resolved) {
  MOTLEY_TRY(check_train_options(arguments));
  TrainingRequest request;
  PlanRequest& planning = request.planning;
  MOTLEY_ASSIGN(resolved, read_config(arguments.operand(0), arguments));
  planning.config = resolved.config;
  request.origins = resolved.origins;
  request.commands = commands_of(arguments, resolved);
  request.display.quiet = arguments.has("quiet");
  request.dry_run = arguments.has("dry-run");
  if (arguments.has("stages")) {
    MOTLEY_ASSIGN(const auto stages, integer_value(arguments, "stages", 1, 4096));
    planning.stages = static_cast<int>(stages);
  }
  if (arguments.has("stop-after")) {
    MOTLEY_ASSIGN(request.stop_after, integer_value(arguments, "stop-after", 1, kStopAfterMax));
  }
  const int cuts = static_cast<int>(planning.config.parallel.cuts.size());
  const int devices = planning.stages > 0 ? planning.stages : cuts + 1;
  MOTLEY_ASSIGN(planning.cluster, read_cluster(arguments, others_join ? 1 : devices));
  MOTLEY_ASSIGN(planning.known_profile, read_profiles(arguments, planning.config.train));
  if (arguments.has("plan")) {
    MOTLEY_ASSIGN(planning.plan, read_named_plan(arguments.value("plan")));
    if (!arguments.has("cluster") && !others_join) {
      planning.cluster = automatic_cluster(planning.plan->rank_count());
    }
    request.replan.mode = ReplanMode::kOff;
  }
  if (arguments.has("adapt")) {
    if (!capabilities_of(planning.cluster).keeps_state) {
      return Error{ErrorCode::kConfig, "--adapt needs devices that compute",
                   "a run on virtual devices saves no checkpoint that another plan could continue",
                   "leave --adapt out, or use a cluster of real devices"};
    }
    request.replan.mode = ReplanMode::kSwitch;
  }
  request.measure_anew = arguments.has("measure");
  bool resumes = arguments.has("resume");
  if (resumes_by_itself(arguments)) {
    MOTLEY_ASSIGN(resumes, path_exists(RunFolder(planning.config.run.dir).config_path()));
  }
  if (resumes) {
    request.resume = ResumeRequest{.allow_changes = arguments.has("allow-changes")};
  }
  MOTLEY_ASSIGN(request.machines.stage_program, stage_program());
  return request;
}

// A signal before any training.
Error with_same_command(Error error, const TrainingRequest& request) {
  if (!is_stop(error) || !error.remedy.empty()) return error;
  error.remedy = fmt::format(
      "nothing was trained yet; the same command starts again\n"
      "{}",
      request.resume ? request.commands.resume : request.commands.again);
  return error;
}

// Before the run starts.
Result<void> print_plan(const ReadyRun& run) {
  const PlannedRun& planned = run.planned;
  if (!planned.profile.devices.empty()) {
    MOTLEY_ASSIGN(const std::string explanation,
                  explain_plan(planned.plan, planned.model, planned.cluster, planned.profile));
    fmt::print("{}\n", explanation);
  }
  if (const std::string places = starting_folders(planned.cluster); !places.empty()) {
    fmt::print("started: {}\n", places);
  }
  if (run.resumed) fmt::print("resuming after step {}\n", run.resumed->info.step);
  return {};
}

// For resumes_by_itself(): whether the run has nothing left to train, which is then its result.
bool is_complete(const TrainingRequest& request, bool json) {
  const std::string& run = request.planning.config.run.dir;
  const auto step = completed_step(run, request.planning.config);
  if (!step) return false;
  if (json) {
    fmt::print("{}\n", Json{{"run", run}, {"last_step", *step}}.dump());
  } else if (!request.display.quiet) {
    fmt::print("the run {} is complete: step {}\n", run, *step);
  }
  return true;
}

Result<void> carry_out(const TrainingRequest& request,
                       const ResolvedConfig& resolved,
                       bool may_be_complete,
                       bool json,
                       Log& log) {
  if (may_be_complete && is_complete(request, json)) return {};
  auto prepared = begin_run(request, log);
  if (!prepared.ok()) {
    // The workers of a lost launcher may have saved the last step.
    if (may_be_complete && is_complete(request, json)) return {};
    return with_same_command(with_key_position(std::move(prepared).error(), resolved), request);
  }
  const bool prints = !json && !request.display.quiet;
  const ReadyRun& ready = prepared->run;
  if (prints) MOTLEY_TRY(print_plan(ready));
  if (request.dry_run) {
    if (json) fmt::print("{}\n", intention_to_json(ready).dump());
    if (prints) print_intention(ready, request);
    return {};
  }
  std::fflush(stdout);
  MOTLEY_ASSIGN(const RunResult end,
                run_with_restarts(*std::move(prepared), request, log, json ? stderr : stdout));
  const ReadyRun& run = end.run;
  const TrainingSummary& summary = end.summary;
  if (json) {
    Json result{{"run", run.folder.dir().string()},
                {"last_step", summary.last_step},
                {"loss", summary.last_loss ? Json(*summary.last_loss) : Json(nullptr)},
                {"median_step_s", summary.median_step_s},
                {"predicted_step_s", summary.predicted_step_s},
                {"numbers", summary.compute_dtype},
                {run.planned.model.unit + "_per_s", summary.units_per_s}};
    if (!capabilities_of(run.planned.plan).computes) {
      result["virtual"] = true;
      result["loss"] = nullptr;
    }
    if (const auto& evaluation = summary.evaluation) {
      result["eval_loss"] = evaluation->loss;
      if (evaluation->perplexity) result["eval_perplexity"] = *evaluation->perplexity;
      if (evaluation->accuracy) result["eval_accuracy"] = *evaluation->accuracy;
      if (evaluation->top5_accuracy) result["eval_top5_accuracy"] = *evaluation->top5_accuracy;
    }
    if (summary.best) {
      result["best"] = {{"step", summary.best->step}, {"eval_loss", summary.best->loss}};
    }
    if (summary.best_checkpoint) result["best_checkpoint"] = summary.best_checkpoint->string();
    if (!summary.stopped_early.empty()) result["stopped_early"] = summary.stopped_early;
    if (end.restarts > 0) result["restarts"] = end.restarts;
    if (end.switches > 0) result["moves"] = end.switches;
    if (summary.checkpoint) result["checkpoint"] = summary.checkpoint->string();
    fmt::print("{}\n", result.dump());
  } else if (prints) {
    print_summary(run, summary);
    const bool can_go_on = !summary.is_finished && capabilities_of(run.planned.plan).keeps_state;
    if (can_go_on)
      fmt::print(
          "continue with\n"
          "{}\n",
          request.commands.resume_past_stop);
  }
  return {};
}

Result<void> train(const Arguments& arguments) {
  return run_training(arguments, nullptr);
}

}  // namespace

Result<void> run_training(const Arguments& arguments, JoiningMachines* joining) {
  ResolvedConfig resolved;
  MOTLEY_ASSIGN(TrainingRequest request, read_request(arguments, joining != nullptr, resolved));
  ProgressLine line("", request.display.quiet ? nullptr : live_standard_error());
  request.display.line = &line;
  if (arguments.has("service")) return install_service(arguments, resolved);
  // A blocked reader does not block the training.
  NonBlockingWriter errors(STDERR_FILENO);
  std::mutex one_writer;  // also for lines about machines that join, from another thread
  const Log::Output output = [&](std::string_view text) {
    line.step_aside();
    const std::lock_guard lock(one_writer);
    errors.write(text);
  };
  Log log("", log_level(arguments), output);
  Result<void> done = joining == nullptr ? Result<void>() : joining->join(request, line, output);
  if (done.ok())
    done = carry_out(request, resolved, resumes_by_itself(arguments), arguments.has("json"), log);
  if (joining != nullptr) joining->end(request, done, line, log);
  // The terminal shows the error last; here it is only logged.
  if (!done.ok()) log.keep(done.error());
  return done;
}

Command train_command() {
  CommandSpec spec{
      "train",
      "train a model on this machine, or on a cluster",
      {"CONFIG"},
      train_options(),
      "Measures the devices, or reuses the cached profiles of their machines, assigns the\n"
      "layers, starts a process for each stage and monitors them.\n"
      "The run's folder then contains the plan, metrics, a trace, a report and\n"
      "checkpoints.\n\n"
      "After Ctrl-C, SIGTERM or a closed terminal the current step is finished and saved, and\n"
      "the command that continues the run is printed; a second signal ends everything at once.\n"
      "A folder has one launcher at a time: a second one ends with status 4 and names the\n"
      "first.\n\n"
      "After the loss of a process or a machine the run restarts automatically from the newest\n"
      "checkpoint, without machines that do not answer (run.restarts, 3 in a row).\n"
      "If this program itself is killed, the workers save their step, and --resume continues\n"
      "from there. With --service systemd starts it again by itself, also after a reboot.\n\n"
      "Measured steps correct the profiles: after step 8, and then at growing intervals, it\n"
      "plans again and reports a faster plan. With --adapt it saves the current step and\n"
      "continues with that plan.\n\n"
      "Examples\n"
      "  motley train gpt.toml                      one process\n"
      "  motley train gpt.toml --stages 3           a pipeline of three processes\n"
      "  motley train gpt.toml --resume             continue after an interruption\n"
      "  motley train gpt.toml --auto-resume        start, or continue: for scripts and services\n"
      "  motley train gpt.toml --service            the same by systemd until it is complete\n"
      "  motley train gpt.toml --cluster home.toml  as `motley launch`\n"};
  return {spec, train};
}

}  // namespace motley
