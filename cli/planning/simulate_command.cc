// motley simulate: a plan's schedule on the cost model, without hardware.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/median.h"
#include "base/process/progress_line.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/output_file.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/planning/resolve_plan.h"
#include "figures/timeline.h"
#include "partitioner/report/explain.h"
#include "partitioner/search/simulate_plan.h"
#include "plan/quantity_text.h"
#include "plan/rank_names.h"
#include "record/run_folder.h"
#include "record/trace_file.h"

namespace motley {
namespace {

// The optional outputs besides the times: the schedule's text, a trace, a picture.
Result<void> write_pictures(const Arguments& arguments,
                            const Plan& plan,
                            const SimulatedPlan& simulated) {
  if (arguments.has("schedule")) std::fputs(to_text(simulated.schedule).c_str(), stdout);
  const std::vector<std::string> names = rank_names(plan);
  const std::vector<TraceSpan>& spans = simulated.step.spans;
  if (arguments.has("trace")) {
    MOTLEY_TRY(write_output(arguments.value("trace"), trace_text(spans, names)));
  }
  if (arguments.has("svg")) {
    const std::string title =
        fmt::format("{}: a step of {:.4f} s{}, {}", arguments.operand(0), simulated.step.step_s,
                    times_label(plan), schedule_text(plan));
    MOTLEY_TRY(write_output(arguments.value("svg"),
                            svg_file(title, {timeline(spans, names, {.title = title})})));
  }
  return {};
}

void print_step(const Plan& plan, const SimulatedPlan& simulated) {
  const SimulatedStep& step = simulated.step;
  fmt::print("a step takes {:.4f} s{}\n", step.step_s, times_label(plan));
  for (int rank = 0; rank < plan.rank_count(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    fmt::print(
        "  {:<24} computes {:.4f} s, codecs and messages {:.4f} s, waits {:.4f} s "
        "({:.4f} s for ranks, {:.4f} s for links), needs {}\n",
        rank_name(plan, Rank{rank}), step.compute_s[index], step.codec_s[index], step.wait_s[index],
        step.wait_sender_s[index], step.wait_link_s[index],
        bytes_text(static_cast<double>(simulated.memory[index].bytes())));
  }
}

Result<void> simulate(const Arguments& arguments) {
  MOTLEY_ASSIGN(const Plan plan, read_named_plan(arguments.operand(0)));
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.value("config"), arguments));
  PlanRequest asked{.config = resolved.config, .plan = plan};
  MOTLEY_ASSIGN(asked.cluster, read_cluster(arguments, plan.rank_count(), Mixture::kAllowed));
  MOTLEY_ASSIGN(asked.known_profile, read_profiles(arguments, resolved.config.train));
  const auto resolved_plan = resolve_plan(asked);
  if (!resolved_plan.ok()) return with_key_position(resolved_plan.error(), resolved);
  const auto& [model, cluster, profile, options] = *resolved_plan;
  std::int64_t repeat = 0;
  if (arguments.has("repeat")) {
    MOTLEY_ASSIGN(repeat, integer_value(arguments, "repeat", 1, 100'000));
  }
  std::int64_t seed = 1;
  if (arguments.has("seed")) {
    MOTLEY_ASSIGN(seed, integer_value(arguments, "seed", 0, std::int64_t{1} << 62));
  }
  MOTLEY_TRY(check_outputs(arguments, {"trace", "svg"}));
  const bool spans = arguments.has("trace") || arguments.has("svg");
  MOTLEY_ASSIGN(const SimulatedPlan simulated,
                simulate_plan(plan, model, cluster, profile, options, {.spans = spans}));
  std::vector<double> steps_s;
  ProgressLine line("");
  for (std::int64_t i = 0; i < repeat; ++i) {
    line.say(fmt::format("simulating: step {} of {}", i + 1, repeat));
    const SimulateOptions how{.seed = static_cast<std::uint64_t>(seed + i), .draw_times = true};
    MOTLEY_ASSIGN(const SimulatedPlan drawn,
                  simulate_plan(plan, model, cluster, profile, options, how));
    steps_s.push_back(drawn.step.step_s);
  }
  line.clear();
  MOTLEY_TRY(write_pictures(arguments, plan, simulated));
  const SimulatedStep& step = simulated.step;
  if (arguments.has("json")) {
    Json json{{"step_s", step.step_s},
              {"compute_s", step.compute_s},
              {"codec_s", step.codec_s},
              {"wait_s", step.wait_s},
              {"wait_sender_s", step.wait_sender_s},
              {"wait_link_s", step.wait_link_s},
              {"memory_bytes", Json::array()}};
    for (const RankMemory& rank : simulated.memory) json["memory_bytes"].push_back(rank.bytes());
    if (repeat > 0) json["drawn_step_s"] = steps_s;
    fmt::print("{}\n", json.dump());
    return {};
  }
  print_step(plan, simulated);
  if (repeat > 0) {
    const MedianAndSpread drawn = median_and_spread(steps_s);
    fmt::print("{} steps with sampled times: median {:.4f} s, spread {:.4f} s\n", repeat,
               drawn.median, drawn.spread);
  }
  return {};
}

}  // namespace

Command simulate_command() {
  CommandSpec spec{
      "simulate",
      "simulate a plan's schedule with the cost model",
      {"PLAN"},
      {{"config", "FILE", "the configuration of the plan"},
       cluster_option(),
       links_option(),
       profile_option(),
       {"schedule", "", "print the schedule: the actions of every rank in order"},
       {"trace", "FILE", "write a trace for ui.perfetto.dev"},
       {"svg", "FILE", "draw the step as an SVG picture"},
       {"repeat", "N", "simulate N more steps with times sampled from their measured spread"},
       {"seed", "S", "seed of the sampled times (default 1)"},
       set_option(),
       json_option()},
      "Needs no hardware: link speeds come from the cluster file, layer times from\n"
      "profiles. The memory of a rank is the peak of its process in a step, by the order of\n"
      "its actions. The trace has the format of a real run's trace.json, so that both can be\n"
      "compared. The spread of sampled steps is their median absolute deviation.\n\n"
      "Example\n"
      "  motley simulate plan.json --config gpt.toml --profile here.json --svg step.svg\n"};
  spec.needs = "--config FILE --profile FILE";
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
