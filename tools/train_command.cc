// motley train and motley launch: the same run, on this machine or on several.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "cluster/run/prepare.h"
#include "cluster/run/run_folder.h"
#include "cluster/run/training_run.h"
#include "partitioner/advise/explain.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

Result<TrainingRequest> read_request(const Arguments& arguments) {
  if (arguments.has("plan") && arguments.has("stages")) {
    return Error{ErrorCode::kUsage, "--plan and --stages exclude each other",
                 "a plan says how many stages there are", "leave one of them out"};
  }
  TrainingRequest request;
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  request.config = resolved.config;
  if (arguments.has("stages")) {
    MOTLEY_ASSIGN(const auto stages, integer_value(arguments, "stages", 1, 4096));
    request.stages = static_cast<int>(stages);
  }
  if (arguments.has("stop-after")) {
    MOTLEY_ASSIGN(request.stop_after, integer_value(arguments, "stop-after", 1, 1LL << 40));
  }
  const int cuts = static_cast<int>(request.config.parallel.cuts.size());
  const int devices = request.stages > 0 ? request.stages : cuts + 1;
  MOTLEY_ASSIGN(request.cluster, read_cluster(arguments, devices));
  MOTLEY_ASSIGN(request.known_profile, read_profiles(arguments));
  if (arguments.has("plan")) {
    MOTLEY_ASSIGN(request.plan, read_named_plan(arguments.value("plan")));
    if (!arguments.has("cluster")) request.cluster = local_cluster(request.plan->rank_count());
  }
  request.resume = arguments.has("resume");
  MOTLEY_ASSIGN(request.stage_program, stage_program());
  return request;
}

void print_summary(const PreparedRun& run, const TrainingSummary& summary) {
  const bool is_waited = is_virtual(run.plan);
  fmt::print("\nstep {} done", summary.last_step);
  if (!is_waited) fmt::print(", loss {:.4f}", summary.last_loss);
  if (summary.last_eval_loss) fmt::print(", held-out loss {:.4f}", *summary.last_eval_loss);
  fmt::print("\n{:.0f} tokens/s, {:.3f} s a step (median)", summary.tokens_per_s,
             summary.median_step_s);
  if (summary.predicted_step_s > 0) fmt::print("; predicted {:.3f} s", summary.predicted_step_s);
  if (is_waited) fmt::print("\n{}", kVirtualNotice);
  fmt::print("\nmetrics     {}\n", run.folder.metrics_path().string());
  if (summary.has_trace) {
    fmt::print("trace       {} (opens in ui.perfetto.dev)\n", run.folder.trace_path().string());
  }
  if (summary.checkpoint) fmt::print("checkpoint  {}\n", summary.checkpoint->string());
}

Result<void> train(const Arguments& arguments) {
  const Log log("");
  MOTLEY_ASSIGN(const TrainingRequest request, read_request(arguments));
  MOTLEY_ASSIGN(const PreparedRun run, prepare_run(request, log));
  const bool json = arguments.has("json");
  if (!json) {
    if (!run.profile.devices.empty()) {
      MOTLEY_ASSIGN(const std::string explanation,
                    explain_plan(run.plan, run.model, run.cluster, run.profile));
      fmt::print("{}\n", explanation);
    }
    if (run.resume_from) fmt::print("resuming after step {}\n", run.resume_from->step);
    std::fflush(stdout);
  }
  MOTLEY_ASSIGN(const TrainingSummary summary,
                run_training(run, request, log, json ? stderr : stdout));
  if (json) {
    Json result{{"run", run.folder.dir().string()},
                {"last_step", summary.last_step},
                {"loss", summary.last_loss},
                {"median_step_s", summary.median_step_s},
                {"predicted_step_s", summary.predicted_step_s},
                {"tokens_per_s", summary.tokens_per_s}};
    if (is_virtual(run.plan)) {
      result["virtual"] = true;
      result["loss"] = nullptr;
    }
    if (summary.last_eval_loss) result["eval_loss"] = *summary.last_eval_loss;
    if (summary.checkpoint) result["checkpoint"] = summary.checkpoint->string();
    fmt::print("{}\n", result.dump());
  } else {
    print_summary(run, summary);
  }
  return {};
}

std::vector<OptionSpec> run_options() {
  return {
      cluster_option(),
      links_option(),
      {"plan", "FILE", "run this plan (from `motley plan -o`) instead of making one"},
      profile_option(),
      pin_option(),
      {"run", "DIR", "the run's folder (run.dir)"},
      {"resume", "", "go on from the newest checkpoint of that folder"},
      {"stop-after", "N",
       "save and end after step N as an interruption would; the learning rate's schedule stays"},
      set_option(),
      json_option()};
}

}  // namespace

Command train_command() {
  CommandSpec spec{
      "train",
      "train a model on this machine, or on a cluster",
      {"CONFIG"},
      run_options(),
      "Measures the devices, plans who computes which layers, starts a stage process\n"
      "for each and follows them. The run's folder then holds the plan, metrics, a\n"
      "trace and checkpoints. Ctrl-C ends all processes. A folder has one launcher at a\n"
      "time: a second one ends with status 4 and says who holds it.\n\n"
      "Examples\n"
      "  motley train gpt.toml                      one process\n"
      "  motley train gpt.toml --stages 3           a pipeline of three processes\n"
      "  motley train gpt.toml --resume             go on after an interruption\n"
      "  motley train gpt.toml --cluster home.toml  as `motley launch`\n"};
  spec.options.insert(spec.options.begin(),
                      {"stages", "N", "exactly N stages (default: what is fastest)"});
  return {spec, train};
}

Command launch_command() {
  CommandSpec spec{
      "launch",
      "train on several machines, started from here",
      {"CONFIG"},
      run_options(),
      "Starts a stage process on every machine that the plan uses, through the remote\n"
      "shell that its entry in the cluster file names (ssh by default, with your own\n"
      "configuration), exchanges their addresses, and brings back one log. When it\n"
      "ends, for whatever reason, no process stays behind anywhere.\n\n"
      "Motley must be built on every machine; motley_dir in the cluster file says\n"
      "where. The run's folder must be reachable under the same path on all of them.\n\n"
      "Example\n"
      "  motley launch gpt.toml --cluster home.toml\n"};
  return {spec, [](const Arguments& arguments) -> Result<void> {
            if (!arguments.has("cluster")) {
              return Error{ErrorCode::kUsage, "motley launch needs --cluster FILE", "",
                           "use motley train for this machine alone"};
            }
            return train(arguments);
          }};
}

}  // namespace motley
