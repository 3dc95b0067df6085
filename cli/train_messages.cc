#include "cli/train_messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "cluster/launch/workers.h"
#include "cluster/run_record/run_report.h"
#include "partitioner/report/compute_dtypes_text.h"
#include "plan/quantity_text.h"

namespace motley {

void print_intention(const PreparedRun& run, const TrainingRequest& request) {
  fmt::print("\nwould run steps {} to {} in {}\n", run.first_step, last_step_of(run, request),
             run.folder.dir().string());
  if (run.resume_from) fmt::print("from        {}\n", run.resume_from->folder.string());
  for (Rank rank{0}; rank.value < run.plan.rank_count(); ++rank.value) {
    const RankPlan& place = run.plan.ranks[rank.index()];
    const Machine* machine = run.cluster.find(place.machine);
    const bool is_here = machine == nullptr || machine->shell.empty();
    fmt::print("{}: {}, {} thread{}, {}\n", rank_name(run.plan, rank), place.device, place.threads,
               place.threads == 1 ? "" : "s",
               is_here ? "on this machine" : fmt::format("by {}", fmt::join(machine->shell, " ")));
  }
  if (run.plan.rank_count() > 1) fmt::print("{}\n", run.transport.reason);
  fmt::print(
      "nothing was trained or written; to start the run:\n"
      "{}\n",
      request.resume ? request.commands.resume : request.commands.again);
}

Json intention_to_json(const PreparedRun& run, const TrainingRequest& request) {
  return {{"dry_run", true},
          {"run", run.folder.dir().string()},
          {"first_step", run.first_step},
          {"last_step", last_step_of(run, request)},
          {"predicted_step_s", run.plan.predicted_step_s},
          {"plan", plan_to_json(run.plan)}};
}

void print_summary(const PreparedRun& run, const TrainingSummary& summary) {
  const bool computes = capabilities_of(run.plan).computes;
  fmt::print("\n{}", done_text(summary, computes));
  fmt::print("\n{} {}/s, {:.3f} s a step (median)", per_second_text(summary.units_per_s),
             run.model.unit, summary.median_step_s);
  if (summary.predicted_step_s > 0) fmt::print("; predicted {:.3f} s", summary.predicted_step_s);
  if (!computes) fmt::print("\n{}\n{}", kVirtualNotice, kSimulatedLinksNotice);
  if (const std::string compute_dtype = compute_dtypes_text(run.plan, summary.compute_dtype);
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
  fmt::print("next        motley report {}\n", run.folder.dir().string());
}

}  // namespace motley
