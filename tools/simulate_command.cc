// motley simulate: a plan's schedule on the cost model; no hardware needed.
#include <fmt/format.h>

#include <cstdio>

#include "base/files.h"
#include "base/json.h"
#include "cluster/prepare.h"
#include "cluster/run_folder.h"
#include "cluster/workers.h"
#include "partitioner/simulate_plan.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

Result<void> simulate(const Arguments& arguments) {
  MOTLEY_ASSIGN(const Plan plan, read_named_plan(arguments.operand(0)));
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.value("config"), arguments));
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(resolved.config.model));
  MOTLEY_ASSIGN(const Cluster cluster, read_cluster(arguments, plan.rank_count()));
  MOTLEY_ASSIGN(const Profile profile, read_profiles(arguments));
  MOTLEY_TRY(check_plan(plan, model, resolved.config, cluster));
  MOTLEY_ASSIGN(const PlanOptions options, plan_options(resolved.config, 0));
  MOTLEY_ASSIGN(const SimulatedPlan simulated,
                simulate_plan(plan, model, cluster, profile, options));
  const SimulatedStep& step = simulated.step;
  if (arguments.has("schedule")) std::fputs(to_text(simulated.schedule).c_str(), stdout);
  if (arguments.has("trace")) {
    std::vector<std::string> names;
    for (int rank = 0; rank < plan.rank_count(); ++rank)
      names.push_back(rank_name(plan, Rank{rank}));
    MOTLEY_TRY(
        write_file_atomic(arguments.value("trace"), trace_to_json(step.spans, names).dump()));
  }
  if (arguments.has("json")) {
    fmt::print("{}\n",
               Json{{"step_s", step.step_s}, {"compute_s", step.compute_s}, {"wait_s", step.wait_s}}
                   .dump());
    return {};
  }
  fmt::print("a step takes {:.4f} s\n", step.step_s);
  for (int rank = 0; rank < plan.rank_count(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    fmt::print("  {:<24} computes {:.4f} s, waits {:.4f} s\n", rank_name(plan, Rank{rank}),
               step.compute_s[index], step.wait_s[index]);
  }
  return {};
}

}  // namespace

Command simulate_command() {
  CommandSpec spec{
      "simulate",
      "run a plan's schedule on the cost model",
      {"PLAN"},
      {{"config", "FILE", "the configuration that the plan is for"},
       cluster_option(),
       profile_option(),
       {"schedule", "", "print the schedule: every rank's actions in order"},
       {"trace", "FILE", "write a trace that ui.perfetto.dev opens"},
       set_option(),
       json_option()},
      "Needs no hardware: link speeds come from the cluster file, layer times from\n"
      "profiles. The trace has the format of a real run's trace.json, so predicted\n"
      "and measured can be laid over each other.\n\n"
      "Example\n"
      "  motley simulate plan.json --config gpt.toml --profile here.json --trace t.json\n"};
  return {spec, [](const Arguments& arguments) -> Result<void> {
            for (const char* option : {"config", "profile"}) {
              if (arguments.has(option)) continue;
              return Error{ErrorCode::kUsage,
                           fmt::format("motley simulate needs --{} FILE", option), "",
                           "a run's folder holds config.toml and profile.json"};
            }
            return simulate(arguments);
          }};
}

}  // namespace motley
