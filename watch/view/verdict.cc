#include "watch/view/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "base/median.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

using Steps = std::span<const StepMetrics>;

Steps lasting_steps(const JudgedRun& run) {
  const Steps all = run.steps;
  return all.last(std::min(all.size(), kLastingSteps));
}

template <class Of>
double median_of(Steps steps, const Of& of) {
  std::vector<double> values;
  for (const StepMetrics& step : steps) {
    if (const double value = of(step); std::isfinite(value)) values.push_back(value);
  }
  return values.empty() ? std::nan("") : median(std::move(values));
}

template <class Is>
bool lasts(Steps steps, const Is& is) {
  return static_cast<std::size_t>(std::ranges::count_if(steps, is)) >= kLastingOfThem;
}

double step_s(Steps steps) {
  return median_of(steps, [](const StepMetrics& step) { return step.step_s; });
}

VerdictLevel level_of(double share_of_step) {
  return share_of_step >= kBad ? VerdictLevel::kBad : VerdictLevel::kWatch;
}

std::string percent_over(double base, double value) {
  return fmt::format("{:+.0f} %", (value / base - 1) * 100);
}

// A verdict while the run goes on, and what stays true of it when it has ended.
struct Finding {
  Verdict verdict;
  std::string lesson;
};

std::string percent_longer(double base, double value) {
  return fmt::format("{:.0f} % longer than planned", (value / base - 1) * 100);
}

// Whether anything waits for anything.
bool is_of_several_machines(const JudgedRun& run) {
  return std::ranges::any_of(
      run.ranks, [&](const JudgedRank& rank) { return rank.machine != run.ranks.front().machine; });
}

std::optional<Finding> judge_skipped(const JudgedRun& run) {
  const Steps steps = lasting_steps(run);
  const auto skipped = static_cast<std::size_t>(
      std::ranges::count_if(steps, [](const StepMetrics& step) { return step.skipped; }));
  if (skipped < kSkippedBad) return {};
  const std::string text = fmt::format(
      "{} of the last {} steps were skipped: the gradient is not finite", skipped, steps.size());
  return Finding{{VerdictLevel::kBad, text,
                  "stop it and go on from an earlier checkpoint with a smaller train.lr"},
                 text};
}

// The rank that is nearest to its limit.
std::optional<Finding> judge_memory(const JudgedRun& run) {
  const StepMetrics& last = run.steps.back();
  double nearest = 0;
  std::size_t at = 0;
  for (std::size_t r = 0; r < std::min(last.ranks.size(), run.ranks.size()); ++r) {
    const auto limit = static_cast<double>(run.ranks[r].memory_limit_bytes);
    if (limit <= 0) continue;
    const double share = static_cast<double>(last.ranks[r].memory_bytes) / limit;
    if (share <= nearest) continue;
    nearest = share;
    at = r;
  }
  if (nearest < kMemoryNear) return {};
  const std::string& machine = run.ranks[at].machine;
  const std::string used =
      fmt::format("{} of {}", bytes_text(static_cast<double>(last.ranks[at].memory_bytes)),
                  bytes_text(static_cast<double>(run.ranks[at].memory_limit_bytes)));
  return Finding{{nearest >= kMemoryBad ? VerdictLevel::kBad : VerdictLevel::kWatch,
                  fmt::format("{} is near the end of its memory: {}", machine, used),
                  "end other programs there, or plan with a smaller train.micro_batch or "
                  "parallel.recompute = \"all\""},
                 fmt::format("{} was near the end of its memory: {}", machine, used)};
}

// A finding, and what its reason costs of a step.
struct Complaint {
  double lost_s = 0;
  Finding finding;
};

struct SlowRank {
  std::size_t rank = 0;
  double over_s = 0;  // what its computing is over its plan
};

// The rank whose computing is most over its plan, for long enough to say so.
std::optional<SlowRank> slowest_rank(const JudgedRun& run) {
  const Steps steps = lasting_steps(run);
  std::optional<SlowRank> slowest;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const double planned_s = run.ranks[r].predicted_compute_s;
    if (planned_s <= 0) continue;
    const bool is_over = lasts(steps, [&](const StepMetrics& step) {
      return computed_s(step, r) > planned_s * (1 + kWorthSaying);
    });
    if (!is_over) continue;
    const double over_s =
        median_of(steps, [&](const StepMetrics& step) { return computed_s(step, r); }) - planned_s;
    if (!slowest || over_s > slowest->over_s) slowest = SlowRank{r, over_s};
  }
  return slowest;
}

Complaint complain_of(const JudgedRun& run, const SlowRank& slow, double over_plan) {
  const JudgedRank& rank = run.ranks[slow.rank];
  const double taken_s = rank.predicted_compute_s + slow.over_s;
  const std::string longer = percent_longer(rank.predicted_compute_s, taken_s);
  const std::string text = is_of_several_machines(run)
                               ? fmt::format("{} is the bottleneck: {} over plan", rank.machine,
                                             percent_over(rank.predicted_compute_s, taken_s))
                               : fmt::format("{} computes {}", rank.machine, longer);
  return {slow.over_s,
          {{level_of(over_plan), text,
            "end other programs there and look at its cooling and mains, or stop and resume the "
            "run: it is planned anew"},
           fmt::format("{} computed {}", rank.machine, longer)}};
}

struct BusyLink {
  const JudgedLink* link = nullptr;
  double bytes = 0;  // of a step
};

// Of the links between machines the one that what was sent keeps busy for longest.
BusyLink busiest_link(const JudgedRun& run) {
  BusyLink busiest;
  double longest_s = 0;
  for (const JudgedLink& link : run.links) {
    const bool is_known =
        link.from.index() < run.ranks.size() && link.to.index() < run.ranks.size();
    if (!is_known || run.ranks[link.from.index()].machine == run.ranks[link.to.index()].machine) {
      continue;
    }
    const double bytes = median_of(lasting_steps(run), [&](const StepMetrics& step) {
      for (const StepMetrics::Sent& sent : step.links) {
        if (sent.from == link.from && sent.to == link.to) return static_cast<double>(sent.bytes);
      }
      return 0.0;
    });
    const double busy_s = link.bandwidth_bytes_per_s > 0 ? bytes / link.bandwidth_bytes_per_s : 0;
    if (!(busy_s > longest_s)) continue;
    longest_s = busy_s;
    busiest = {&link, bytes};
  }
  return busiest;
}

Complaint complain_of_links(const JudgedRun& run, double waited_s, double over_plan) {
  const BusyLink busiest = busiest_link(run);
  const double measured_s = step_s(lasting_steps(run));
  const std::string over = percent_over(run.predicted_step_s, measured_s);
  const std::string longer = percent_longer(run.predicted_step_s, measured_s);
  if (busiest.link == nullptr) {
    return {waited_s,
            {{level_of(over_plan),
              fmt::format("steps take {} over plan, and no machine computes longer", over),
              "motley report shows where the time went; motley doctor looks for what slows "
              "messages"},
             fmt::format("steps took {}, and no machine computed longer", longer)}};
  }
  const JudgedLink& link = *busiest.link;
  const std::string name = fmt::format("{} → {}", run.ranks[link.from.index()].machine,
                                       run.ranks[link.to.index()].machine);
  const std::string load = fmt::format("{} a step at {}", bytes_text(busiest.bytes),
                                       link_rate_text(link.bandwidth_bytes_per_s));
  return {waited_s,
          {{level_of(over_plan),
            fmt::format("the link {} is below its rate: steps take {} over plan in waiting, for {}",
                        name, over, load),
            "end other transfers on it, or measure it by motley probe and plan with --links"},
           fmt::format("the link {} was below its rate: steps took {}, waiting for {}", name,
                       longer, load)}};
}

// Why steps take longer than planned.
std::optional<Complaint> judge_pace(const JudgedRun& run) {
  const double planned_s = run.predicted_step_s;
  if (planned_s <= 0) return {};
  const Steps steps = lasting_steps(run);
  const bool is_over = lasts(
      steps, [&](const StepMetrics& step) { return step.step_s > planned_s * (1 + kWorthSaying); });
  if (!is_over) return {};
  const double over_s = step_s(steps) - planned_s;
  const auto slow = slowest_rank(run);
  // What is not one machine's computing is waiting, and all do it.
  const double waited_s = over_s - (slow ? slow->over_s : 0);
  if (slow && slow->over_s >= waited_s) return complain_of(run, *slow, over_s / planned_s);
  return complain_of_links(run, waited_s, over_s / planned_s);
}

// What saving costs, as far as the steps beside it take longer than others.
std::optional<Complaint> judge_saves(const JudgedRun& run) {
  constexpr std::size_t kOthers = 5;
  std::vector<double> others_s;
  std::size_t saving = 0;
  double all_s = 0;
  for (const StepPace& pace : run.paces) {
    all_s += pace.taken_s;
    if (pace.saving) {
      ++saving;
    } else {
      others_s.push_back(pace.taken_s);
    }
  }
  if (saving < 2 || others_s.size() < kOthers) return {};
  const double usual_s = median(others_s);
  double lost_s = 0;
  for (const StepPace& pace : run.paces) {
    if (pace.saving) lost_s += std::max(0.0, pace.taken_s - usual_s);
  }
  const double share = lost_s / all_s;
  if (!(share >= kWorthSaying)) return {};
  return Complaint{lost_s / static_cast<double>(run.paces.size()),
                   {{level_of(share), fmt::format("saving takes {:.0f} % of the time", share * 100),
                     "raise checkpoint.every, or save to a faster disk"},
                    fmt::format("saving took {:.0f} % of the time", share * 100)}};
}

Verdict in_order(const JudgedRun& run) {
  const Steps steps = lasting_steps(run);
  const double measured_s = step_s(run.steps);  // as it is shown beside
  if (!std::isfinite(measured_s))
    return {VerdictLevel::kGood, "the run does not tell its times", ""};
  const std::string text = seconds_text(measured_s) + " a step";
  if (run.predicted_step_s <= 0) return {VerdictLevel::kGood, text + "; no prediction", ""};
  const bool is_faster = lasts(steps, [&](const StepMetrics& step) {
    return step.step_s < run.predicted_step_s * (1 - kWorthSaying);
  });
  if (!is_faster) return {VerdictLevel::kGood, "as planned: " + text, ""};
  return {VerdictLevel::kGood,
          fmt::format("faster than planned: {}, {}", text,
                      percent_over(run.predicted_step_s, measured_s)),
          ""};
}

// What is most worth saying of the run; nothing where all is in order.
std::optional<Finding> worst_of(const JudgedRun& run) {
  if (auto skipped = judge_skipped(run)) return skipped;
  auto memory = judge_memory(run);
  if (memory && memory->verdict.level == VerdictLevel::kBad) return memory;
  auto pace = judge_pace(run);
  auto saves = judge_saves(run);
  if (pace && (!saves || pace->lost_s >= saves->lost_s)) return std::move(pace->finding);
  if (saves) return std::move(saves->finding);
  return memory;
}

}  // namespace

const char* verdict_word(VerdictLevel level) {
  switch (level) {
    case VerdictLevel::kGood:
      return "good";
    case VerdictLevel::kWatch:
      return "watch";
    case VerdictLevel::kBad:
      return "bad";
  }
  return "bad";
}

double computed_s(const StepMetrics& step, std::size_t rank) {
  if (rank < step.ranks.size()) return step.ranks[rank].compute_s;
  return rank < step.wait_s.size() ? step.step_s - step.wait_s[rank] : std::nan("");
}

Verdict judge(const JudgedRun& run) {
  if (run.steps.size() < kLastingSteps) {
    return {VerdictLevel::kGood, "too few steps yet to judge", ""};
  }
  if (auto found = worst_of(run)) return std::move(found->verdict);
  return in_order(run);
}

std::string lesson_of(const JudgedRun& run) {
  if (run.steps.size() < kLastingSteps) return "";
  const auto found = worst_of(run);
  return found ? found->lesson : "";
}

}  // namespace motley
