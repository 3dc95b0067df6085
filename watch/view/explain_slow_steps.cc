#include "watch/view/explain_slow_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "plan/quantity_text.h"

namespace motley {
namespace {

std::string percent_longer(double base, double value) {
  return fmt::format("{:.0f} % longer than planned", (value / base - 1) * 100);
}

// Whether the ranks are on several machines, so that one can delay others.
bool is_of_several_machines(const AssessedRun& run) {
  return std::ranges::any_of(run.ranks, [&](const AssessedRank& rank) {
    return rank.machine != run.ranks.front().machine;
  });
}

struct SlowRank {
  std::size_t rank = 0;
  double over_s = 0;  // computing time above the plan
};

// The rank with the largest persistent excess of computing time over its plan.
std::optional<SlowRank> slowest_rank(const AssessedRun& run) {
  const Steps steps = recent_window(run);
  std::optional<SlowRank> slowest;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const double planned_s = run.ranks[r].predicted_compute_s;
    if (planned_s <= 0) continue;
    const bool is_over = persists(steps, [&](const StepMetrics& step) {
      return computed_s(step, r) > planned_s * (1 + kReportableShare);
    });
    if (!is_over) continue;
    const double over_s =
        median_of(steps, [&](const StepMetrics& step) { return computed_s(step, r); }) - planned_s;
    if (!slowest || over_s > slowest->over_s) slowest = SlowRank{r, over_s};
  }
  return slowest;
}

CostedFinding complain_of(const AssessedRun& run, const SlowRank& slow, double over_plan) {
  const AssessedRank& rank = run.ranks[slow.rank];
  const double taken_s = rank.predicted_compute_s + slow.over_s;
  const std::string longer = percent_longer(rank.predicted_compute_s, taken_s);
  const std::string text = is_of_several_machines(run)
                               ? fmt::format("{} is the bottleneck: {} over plan", rank.machine,
                                             percent_over(rank.predicted_compute_s, taken_s))
                               : fmt::format("{} computes {}", rank.machine, longer);
  return {slow.over_s,
          {{level_of(over_plan), text,
            "end other programs there and check its cooling and power, or stop and resume the run "
            "for a new plan"},
           fmt::format("{} computed {}", rank.machine, longer)}};
}

struct BusyLink {
  const AssessedLink* link = nullptr;
  double bytes = 0;   // per step
  double busy_s = 0;  // per step, at the link's bandwidth
};

// The link between machines with the longest transfer time per step.
BusyLink busiest_link(const AssessedRun& run) {
  BusyLink busiest;
  for (const AssessedLink& link : run.links) {
    const bool is_known =
        link.from.index() < run.ranks.size() && link.to.index() < run.ranks.size();
    if (!is_known || run.ranks[link.from.index()].machine == run.ranks[link.to.index()].machine) {
      continue;
    }
    const double bytes = median_of(recent_window(run), [&](const StepMetrics& step) {
      for (const StepMetrics::Sent& sent : step.links) {
        if (sent.from == link.from && sent.to == link.to) return static_cast<double>(sent.bytes);
      }
      return 0.0;
    });
    const double busy_s = link.bandwidth_bytes_per_s > 0 ? bytes / link.bandwidth_bytes_per_s : 0;
    if (busy_s > busiest.busy_s) busiest = {&link, bytes, busy_s};
  }
  return busiest;
}

std::string link_name(const AssessedRun& run, const AssessedLink& link) {
  return fmt::format("{} → {}", run.ranks[link.from.index()].machine,
                     run.ranks[link.to.index()].machine);
}

// Waits that no link explains even at half its bandwidth. The cause may be a link that is slower
// still, a frozen process or a lost message.
CostedFinding complain_of_waiting(const AssessedRun& run,
                                  const BusyLink& busiest,
                                  double waited_s,
                                  double over_plan) {
  const double measured_s = median_step_s(recent_window(run));
  const std::string probe = busiest.link == nullptr
                                ? ""
                                : fmt::format("; most bytes use {}: measure it with motley probe",
                                              link_name(run, *busiest.link));
  return {waited_s,
          {{level_of(over_plan),
            fmt::format("steps take {} over plan, and no machine computes longer",
                        percent_over(run.predicted_step_s, measured_s)),
            "motley report shows the use of time, and motley doctor checks for causes that slow "
            "messages" +
                probe},
           fmt::format("steps took {}, and no machine computed longer",
                       percent_longer(run.predicted_step_s, measured_s))}};
}

// A link explains the waits if half its bandwidth would: it is then busy for as long again.
CostedFinding complain_of_links(const AssessedRun& run, double waited_s, double over_plan) {
  const BusyLink busiest = busiest_link(run);
  if (busiest.busy_s <= waited_s) return complain_of_waiting(run, busiest, waited_s, over_plan);
  const double measured_s = median_step_s(recent_window(run));
  const std::string name = link_name(run, *busiest.link);
  const std::string load = fmt::format("{} a step at {}", bytes_text(busiest.bytes),
                                       link_rate_text(busiest.link->bandwidth_bytes_per_s));
  return {waited_s,
          {{level_of(over_plan),
            fmt::format("the link {} is below its rate: steps take {} over plan in waiting, for {}",
                        name, percent_over(run.predicted_step_s, measured_s), load),
            "end other transfers on it, or measure it with motley probe and plan with --links"},
           fmt::format("the link {} was below its rate: steps took {}, waiting for {}", name,
                       percent_longer(run.predicted_step_s, measured_s), load)}};
}

}  // namespace

std::optional<CostedFinding> explain_slow_steps(const AssessedRun& run) {
  const double planned_s = run.predicted_step_s;
  if (planned_s <= 0) return {};
  const Steps steps = recent_window(run);
  const bool is_over = persists(steps, [&](const StepMetrics& step) {
    return step.step_s > planned_s * (1 + kReportableShare);
  });
  if (!is_over) return {};
  const double over_s = median_step_s(steps) - planned_s;
  const auto slow = slowest_rank(run);
  // Excess time that is not one machine's computing is waiting, and all ranks wait.
  const double waited_s = over_s - (slow ? slow->over_s : 0);
  if (slow && slow->over_s >= waited_s) return complain_of(run, *slow, over_s / planned_s);
  return complain_of_links(run, waited_s, over_s / planned_s);
}

}  // namespace motley
