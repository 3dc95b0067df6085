#include "cli/train_messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "partitioner/report/compute_dtypes_text.h"
#include "plan/quantity_text.h"
#include "plan/rank_names.h"
#include "record/report_text.h"

namespace motley {

void print_intention(const ReadyRun& run, const TrainingRequest& request) {
  const Plan& plan = run.planned.plan;
  fmt::print("\nwould run steps {} to {} in {}\n", run.steps.first, run.steps.last,
             run.folder.dir().string());
  if (run.resumed) fmt::print("from        {}\n", run.resumed->info.folder.string());
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    const RankPlan& place = plan.ranks[rank.index()];
    const Machine* machine = run.planned.cluster.find(place.machine);
    const bool is_here = machine == nullptr || machine->shell.empty();
    fmt::print("{}: {}, {} thread{}, {}\n", rank_name(plan, rank), place.device, place.threads,
               place.threads == 1 ? "" : "s",
               is_here ? "on this machine" : fmt::format("by {}", fmt::join(machine->shell, " ")));
  }
  if (plan.rank_count() > 1) fmt::print("{}\n", run.planned.transport.reason);
  fmt::print(
      "nothing was trained or written; to start the run:\n"
      "{}\n",
      request.resume ? request.commands.resume : request.commands.again);
}

Json intention_to_json(const ReadyRun& run) {
  return {{"dry_run", true},
          {"run", run.folder.dir().string()},
          {"first_step", run.steps.first},
          {"last_step", run.steps.last},
          {"predicted_step_s", run.planned.plan.predicted_step_s},
          {"plan", plan_to_json(run.planned.plan)}};
}

void print_summary(const ReadyRun& run, const TrainingSummary& summary) {
  const bool computes = capabilities_of(run.planned.plan).computes;
  fmt::print("\n{}", done_text(summary, computes));
  fmt::print("\n{} {}/s, {:.3f} s a step (median)", per_second_text(summary.units_per_s),
             run.planned.model.unit, summary.median_step_s);
  if (summary.predicted_step_s > 0) fmt::print("; predicted {:.3f} s", summary.predicted_step_s);
  if (!computes) fmt::print("\n{}\n{}", kVirtualNotice, kSimulatedLinksNotice);
  if (const std::string compute_dtype =
          compute_dtypes_text(run.planned.plan, summary.compute_dtype);
      !compute_dtype.empty()) {
    fmt::print(
        "\n"
        "dtype       {}",
        compute_dtype);
  }
  fmt::print("\nmetrics     {}\n", run.folder.metrics_path().string());
  if (summary.has_trace) {
    fmt::print("trace       {} (opens in ui.perfetto.dev)\n", run.folder.trace_path().string());
  }
  if (summary.checkpoint) fmt::print("checkpoint  {}\n", summary.checkpoint->string());
  if (summary.best_checkpoint) fmt::print("best        {}\n", summary.best_checkpoint->string());
  fmt::print("next        motley report {}\n", run.folder.dir().string());
}

}  // namespace motley
