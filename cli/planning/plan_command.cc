// motley plan: the assignment of layers to devices, its reasons, and the effect of other machines
// or links.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/local_machine.h"
#include "cli/output_file.h"
#include "cli/planning/plan_changes.h"
#include "cli/planning/plan_pictures.h"
#include "cli/planning/search_budget.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/diagnose/measure.h"
#include "cluster/diagnose/precision_check.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/check_plan.h"
#include "cluster/planning/resolve_plan.h"
#include "partitioner/report/calibration.h"
#include "partitioner/report/explain.h"
#include "partitioner/report/plan_analysis.h"
#include "partitioner/report/remedy.h"
#include "partitioner/report/what_if.h"

namespace motley {
namespace {

// Applies the corrections from the --learn runs to the profile, and prints them on standard error.
Result<void> learn(const std::vector<RunMeasurement>& runs, PlanningInput& input) {
  if (runs.empty()) return {};
  MOTLEY_ASSIGN(const Calibration calibration, calibrate(input, runs));
  std::fputs(calibration_text(calibration).c_str(), stderr);
  input.profile = calibrated(std::move(input.profile), calibration);
  return {};
}

struct Request {
  PlanningInput input;
  std::string precision;                     // train.precision
  std::optional<Plan> other = std::nullopt;  // the plan of --compare
};

Result<Request> read_request(const Arguments& arguments) {
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  PlanRequest asked{.config = resolved.config};
  if (arguments.has("stages")) {
    MOTLEY_ASSIGN(const auto value, integer_value(arguments, "stages", 1, 4096));
    asked.stages = static_cast<int>(value);
  }
  MOTLEY_ASSIGN(asked.cluster, read_cluster(arguments, stages_asked_for(asked), Mixture::kAllowed));
  MOTLEY_ASSIGN(asked.known_profile, read_profiles(arguments, resolved.config.train));
  auto resolved_plan = resolve_plan(asked);
  if (!resolved_plan.ok()) return with_key_position(resolved_plan.error(), resolved);
  MOTLEY_TRY(check_initial_weights_here(resolved.config, resolved.origins));
  Request request{.input = *std::move(resolved_plan), .precision = resolved.config.train.precision};
  PlanningInput& input = request.input;
  MOTLEY_ASSIGN(const auto runs, read_measurements(arguments));
  MOTLEY_TRY(check_outputs(arguments, {"output", "svg", "html"}));
  if (arguments.has("compare")) {
    MOTLEY_ASSIGN(request.other, read_named_plan(arguments.value("compare")));
  }
  // Reports a misspelt change before profiling.
  if (arguments.has("what-if")) MOTLEY_TRY(apply_changes(input, arguments.values("what-if")));
  if (input.profile.devices.empty()) {
    MOTLEY_ASSIGN(const auto program, stage_program());
    ProgressLine line("querying the machines");
    MOTLEY_TRY(check_usable(input.cluster, machine_names(input.cluster), input.model, program));
    MOTLEY_ASSIGN(input,
                  settle_devices(std::move(input), program, resolved.config.comm.start_timeout_s,
                                 Log("", LogLevel::kInfo, line.log_output())));
    line.clear();
    MOTLEY_ASSIGN(
        input, measure_devices(std::move(input), without_initial_weights(resolved.config), program,
                               /*must_hold_model=*/!arguments.has("what-if"),
                               {.anew = arguments.has("measure"), .all_codecs = true}, Log("")));
  } else {
    warn_of(input.profile, Log(""));
  }
  MOTLEY_TRY(check_settled(input.cluster));
  if (request.other) {
    MOTLEY_TRY(check_plan(*request.other, input.model, resolved.config, input.cluster));
  }
  MOTLEY_TRY(learn(runs, input));
  return request;
}

// The machines that hold layers.
Cluster cluster_of(const Plan& plan, Cluster cluster) {
  std::erase_if(cluster.machines, [&](const Machine& machine) {
    return std::ranges::none_of(plan.ranks,
                                [&](const RankPlan& rank) { return rank.machine == machine.name; });
  });
  return cluster;
}

Result<void> plan(const Arguments& arguments) {
  std::optional<double> seconds;
  if (arguments.has("seconds")) {
    MOTLEY_ASSIGN(const std::int64_t value, integer_value(arguments, "seconds", 1, 86'400));
    seconds = static_cast<double>(value);
  }
  MOTLEY_ASSIGN(const Request request, read_request(arguments));
  const PlanningInput& input = request.input;
  if (arguments.has("what-if")) return show_what_if(arguments, input);
  if (arguments.has("advise")) return show_advice(arguments, input);
  ProgressLine line("planning");
  SearchBudget budget(seconds, now_s, &line);
  PlanningInput watched = input;
  watched.options.watch = &budget;
  MOTLEY_ASSIGN(const Planning planning, plan_or_remedy(watched));
  const Plan& made = planning.plan;
  MOTLEY_TRY(check_plan_precision(request.precision, made, input.profile));
  const Json json = plan_to_json(made);
  if (arguments.has("output")) {
    MOTLEY_TRY(write_output(arguments.value("output"), json.dump(2) + "\n"));
  }
  std::string text;
  std::optional<PlanAnalysis> analysis;
  if (draws(arguments) || arguments.has("explain")) {
    line.say("planning without each machine, and with each alternative");
    MOTLEY_ASSIGN(analysis, analyse_plan(input, made));
  }
  line.clear();
  if (draws(arguments)) {
    MOTLEY_TRY(write_plan_pictures(arguments, input, planning, *analysis, request.other));
  }
  if (arguments.has("explain")) {
    MOTLEY_ASSIGN(text, explain_in_full(input, planning, *analysis));
  } else {
    MOTLEY_ASSIGN(text, explain_plan(made, input.model, input.cluster, input.profile));
  }
  if (const std::string places = starting_folders(cluster_of(made, input.cluster));
      !places.empty()) {
    text += fmt::format("starts    {}\n", places);
  }
  print_planned(arguments, json, text + search_line(planning));
  return {};
}

// Options that print something other than the plan exclude each other.
Result<void> check_together(const Arguments& arguments) {
  for (const auto& [one, other] : {std::pair("what-if", "advise"),
                                   {"what-if", "explain"},
                                   {"advise", "explain"},
                                   {"what-if", "output"},
                                   {"advise", "output"},
                                   {"what-if", "svg"},
                                   {"advise", "svg"},
                                   {"what-if", "html"},
                                   {"advise", "html"}}) {
    if (!arguments.has(one) || !arguments.has(other)) continue;
    return Error{ErrorCode::kUsage, fmt::format("--{} and --{} exclude each other", one, other), "",
                 "leave one of them out"};
  }
  if (arguments.has("compare") && !arguments.has("html")) {
    return Error{ErrorCode::kUsage, "--compare PLAN needs --html FILE", "", "also give --html"};
  }
  return {};
}

}  // namespace

Command plan_command() {
  CommandSpec spec{
      "plan",
      "assign layers to devices, and explain the plan",
      {"CONFIG"},
      {cluster_option(),
       links_option(),
       profile_option(),
       measure_option(),
       {"stages", "N", "N stages, each on its own devices (default: the fastest number)"},
       pin_option(),
       {"learn", "RUN", "correct the profile by the measurements of that run (motley report)",
        true},
       {"explain", "",
        "also show the use of time, the bottleneck, the gain of each machine, and more"},
       {"what-if", "CHANGE", "compare with a plan for changed machines", true},
       {"advise", "", "try a list of upgrades and list those that shorten the step most"},
       {"seconds", "N",
        "time limit of the search, which ends with the best plan so far (default: a work limit)"},
       {"svg", "FILE", "draw the plan: layers, links and the simulated step"},
       {"html", "FILE", "write the same as a single-file page, with a description of the plan"},
       {"compare", "PLAN", "with --html: compare with that plan of the same model"},
       {"output", "FILE", "write the plan for `motley train --plan`", false, 'o'},
       set_option(),
       json_option()},
      "Splits the model's layers over the cluster's devices by measured speed and\n"
      "memory, and predicts the time of a step. Without --profile every machine of\n"
      "the cluster is measured first (its motley-stage is started there), or reuses its\n"
      "cached profile; with profiles neither LibTorch nor a machine is needed.\n\n"
      "The last line reports whether the plan is proven optimal, and whether the search was\n"
      "ended early; on a terminal, long searches show their progress. Without --seconds the\n"
      "search ends after a fixed amount of work, about ten seconds, so the same input gives\n"
      "the same plan on a busy computer too; --seconds is wall time. --what-if and --advise\n"
      "plan many times, each to the end. Cached profiles are checked by a new sample each\n"
      "time, so figures differ slightly between calls: to compare plans give --profile FILE\n"
      "of motley profile. A profile is of one train.precision; if a device of the plan\n"
      "computes in bf16 or fp16, the line \"dtype\" shows it.\n\n"
      "The cluster file may contain hypothetical machines beside real ones:\n"
      "device_model = \"rtx-3060\" (docs/devices.md). The plan marks them as virtual.\n\n"
      "Changes for --what-if; several apply together, and x2.5 means 2.5 times the present\n"
      "value:\n"
      "  link.laptop.bandwidth_mbps=2500   all links of a machine, both ways\n"
      "  link.desktop.laptop.latency_us=80 the links between two machines\n"
      "  network.bandwidth_mbps=x10        links without their own entry\n"
      "  machine.box.memory_gib=32         machine.box.speed=2 (twice as fast)\n"
      "  machine.laptop.medium=cable       instead of the Wi-Fi of the cluster file\n"
      "  drop=laptop (drops pins on it)    add=box (another one like it)\n"
      "  codec=fp16                        of activations and their gradients between stages\n"
      "  gradients=int8                    of gradient all-reduces between machines\n"
      "  micro_batch=4                     as train.micro_batch: another order of sums, so\n"
      "                                    that results differ in their last digits\n\n"
      "Examples\n"
      "  motley plan gpt.toml --cluster home.toml --output plan.json\n"
      "  motley plan gpt.toml --cluster home.toml --explain\n"
      "  motley plan gpt.toml --cluster home.toml --html plan.html --compare runs/gpt/plan.json\n"
      "  motley plan gpt.toml --cluster home.toml --set train.precision=bf16\n"
      "  motley plan gpt.toml --cluster home.toml --what-if add=box\n"
      "  motley plan gpt.toml --profile runs/gpt/profile.json --learn runs/gpt\n"};
  return {spec, [](const Arguments& arguments) -> Result<void> {
            MOTLEY_TRY(check_together(arguments));
            return plan(arguments);
          }};
}

}  // namespace motley
