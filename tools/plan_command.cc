// motley plan and motley simulate: the partition planning tool.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "cluster/measure.h"
#include "cluster/prepare.h"
#include "cluster/run_folder.h"
#include "partitioner/explain.h"
#include "partitioner/planner.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

Result<void> plan(const Arguments& arguments) {
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  MOTLEY_TRY(validate_config(resolved.config));
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(resolved.config.model));
  int stages = 0;
  if (arguments.has("stages")) {
    MOTLEY_ASSIGN(const auto value, integer_value(arguments, "stages", 1, 4096));
    stages = static_cast<int>(value);
  }
  MOTLEY_ASSIGN(const Cluster cluster, read_cluster(arguments, std::max(stages, 1)));
  MOTLEY_ASSIGN(const PlanOptions options, plan_options(resolved.config, stages));
  MOTLEY_TRY(check_pins(options.pins, model.layer_names(), cluster));
  MOTLEY_ASSIGN(Profile profile, read_profiles(arguments));
  if (profile.devices.empty()) {
    MOTLEY_ASSIGN(const auto program, stage_program());
    MOTLEY_ASSIGN(profile, measure_cluster(cluster, resolved.config, program, profile, Log("")));
  }
  MOTLEY_ASSIGN(const Plan made, make_plan(model, cluster, profile, options));
  const std::string text = plan_to_json(made).dump(2) + "\n";
  if (arguments.has("output")) MOTLEY_TRY(write_file_atomic(arguments.value("output"), text));
  if (arguments.has("json")) {
    std::fputs(text.c_str(), stdout);
  } else {
    std::fputs(explain_plan(made, model, cluster, profile).c_str(), stdout);
  }
  return {};
}

}  // namespace

Command plan_command() {
  CommandSpec spec{"plan",
                   "decide who computes which layers, and say why",
                   {"CONFIG"},
                   {cluster_option(),
                    profile_option(),
                    {"stages", "N", "exactly N stages (default: what is fastest)"},
                    pin_option(),
                    {"output", "FILE", "write the plan for `motley train --plan`"},
                    set_option(),
                    json_option()},
                   "Splits the model's layers over the cluster's devices by measured speed and\n"
                   "memory, and predicts the time of a step. Without --profile every machine of\n"
                   "the cluster is measured first (its motley-stage is started there); with\n"
                   "profiles no LibTorch and no machine is needed.\n\n"
                   "Example\n"
                   "  motley plan gpt.toml --cluster home.toml --output plan.json\n"};
  return {spec, plan};
}

}  // namespace motley
