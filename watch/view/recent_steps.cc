#include "watch/view/recent_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/median.h"
#include "watch/view/json_number.h"
#include "watch/view/run_finding.h"

namespace motley {
namespace {

constexpr std::size_t kSavesMax = 64;
constexpr std::size_t kLaunchesMax = 64;

std::size_t rank_count(const StepMetrics& step) {
  return std::max(step.ranks.size(), step.wait_s.size());
}

Json waits_to_json(const std::vector<StepMetrics>& steps, std::size_t rank) {
  Json waits = Json::object();
  // Files of earlier versions do not contain the cause of a wait.
  if (rank >= steps.back().ranks.size()) {
    waits["other"] = number_or_null(
        median_of(steps, [&](const StepMetrics& step) { return step.wait_s[rank]; }));
    return waits;
  }
  for (std::size_t cause = 0; cause < kWaitCauseNames.size(); ++cause) {
    waits[kWaitCauseNames[cause]] = number_or_null(median_of(steps, [&](const StepMetrics& step) {
      return step.ranks[rank].times.wait_s.seconds[cause];
    }));
  }
  return waits;
}

}  // namespace

void RecentSteps::add(StepMetrics metrics) {
  while (!window_.empty() && window_.back().step >= metrics.step) window_.pop_back();
  while (!ended_.empty() && ended_.back().step >= metrics.step) ended_.pop_back();
  if (metrics.time_s > 0) {
    ended_.push_back({metrics.step, metrics.time_s, metrics.eval_loss.has_value()});
  }
  if (ended_.size() > kIntervals) ended_.pop_front();
  window_.push_back(std::move(metrics));
  if (window_.size() > kWindow) window_.pop_front();
}

void RecentSteps::add_save(std::int64_t step, double committed_at_s) {
  saves_.push_back({step, committed_at_s});
  if (saves_.size() > kSavesMax) saves_.pop_front();
}

void RecentSteps::add_launch(double began_at_s) {
  launches_s_.push_back(began_at_s);
  if (launches_s_.size() > kLaunchesMax) launches_s_.pop_front();
}

void RecentSteps::clear() {
  window_.clear();
  ended_.clear();
}

std::vector<StepMetrics> RecentSteps::steps() const {
  auto first = window_.end();
  while (first != window_.begin()) {
    const StepMetrics& before = *std::prev(first);
    const bool is_alike = before.ranks.size() == window_.back().ranks.size() &&
                          before.wait_s.size() == window_.back().wait_s.size();
    if (!is_alike) break;
    --first;
  }
  return {first, window_.end()};
}

std::vector<StepInterval> RecentSteps::intervals() const {
  std::vector<StepInterval> intervals;
  for (std::size_t i = 1; i < ended_.size(); ++i) {
    const Ended& before = ended_[i - 1];
    const Ended& now = ended_[i];
    // A gap in the step numbers is the end of a session.
    if (now.evaluated || now.step != before.step + 1 || now.at_s < before.at_s) continue;
    const bool is_broken = std::ranges::any_of(
        launches_s_, [&](double at_s) { return before.at_s < at_s && at_s <= now.at_s; });
    if (is_broken) continue;
    const bool saving = std::ranges::any_of(saves_, [&](const Save& save) {
      const auto saved = std::ranges::find(ended_, save.step, &Ended::step);
      return saved != ended_.end() && saved->at_s < now.at_s && save.committed_at_s > before.at_s;
    });
    intervals.push_back({now.at_s - before.at_s, saving});
  }
  return intervals;
}

double RecentSteps::step_s() const {
  return median_of(steps(), [](const StepMetrics& step) { return step.step_s; });
}

double RecentSteps::tokens_per_s() const {
  return median_of(steps(), [](const StepMetrics& step) { return step.tokens_per_s(); });
}

double RecentSteps::mean_interval_s() const {
  constexpr double kUnusual = 10;  // times the median: a session that ended, or a suspended machine
  const std::vector<StepInterval> all = intervals();
  if (all.empty()) return step_s();
  std::vector<double> taken_s;
  for (const StepInterval& interval : all) taken_s.push_back(interval.taken_s);
  const double middle_s = median(taken_s);
  double sum_s = 0;
  double count = 0;
  for (const double each_s : taken_s) {
    if (each_s > kUnusual * middle_s) continue;
    sum_s += each_s;
    ++count;
  }
  return count > 0 ? sum_s / count : middle_s;
}

Json RecentSteps::ranks_to_json() const {
  Json ranks = Json::array();
  const std::vector<StepMetrics> all = steps();
  if (all.empty()) return ranks;
  const StepMetrics& last = all.back();
  for (std::size_t r = 0; r < rank_count(last); ++r) {
    const bool is_reported = r < last.ranks.size();
    const auto of = [&](double StepTimes::*field) {
      return is_reported
                 ? number_or_null(median_of(
                       all, [&](const StepMetrics& step) { return step.ranks[r].times.*field; }))
                 : Json(nullptr);
    };
    const std::int64_t memory_bytes = is_reported ? last.ranks[r].memory_bytes : 0;
    const double compute_s =
        median_of(all, [&](const StepMetrics& step) { return computed_s(step, r); });
    ranks.push_back({{"compute_s", number_or_null(compute_s)},
                     {"codec_s", of(&StepTimes::codec_s)},
                     {"optimizer_s", of(&StepTimes::optimizer_s)},
                     {"wait_s", waits_to_json(all, r)},
                     {"memory_bytes", memory_bytes > 0 ? Json(memory_bytes) : Json(nullptr)}});
  }
  return ranks;
}

Json RecentSteps::links_to_json() const {
  std::map<std::pair<int, int>, double> bytes;  // by pair of ranks
  double all_s = 0;
  for (const StepMetrics& step : steps()) {
    if (!std::isfinite(step.step_s)) continue;
    all_s += step.step_s;
    for (const StepMetrics::Sent& sent : step.links) {
      bytes[{sent.from.value, sent.to.value}] += static_cast<double>(sent.bytes);
    }
  }
  Json links = Json::array();
  for (const auto& [ranks, sum] : bytes) {
    links.push_back({{"from", ranks.first},
                     {"to", ranks.second},
                     {"bytes_s", all_s > 0 ? number_or_null(sum / all_s) : Json(nullptr)}});
  }
  return links;
}

Json RecentSteps::losses_to_json() const {
  const std::vector<StepMetrics> all = steps();
  const auto of = [&](double StepMetrics::Losses::*field) {
    return number_or_null(
        median_of(all, [&](const StepMetrics& step) { return step.losses.*field; }));
  };
  return {{"imbalance", of(&StepMetrics::Losses::imbalance)},
          {"links_and_filling", of(&StepMetrics::Losses::links_and_filling)},
          {"codec", of(&StepMetrics::Losses::codec)},
          {"optimizer", of(&StepMetrics::Losses::optimizer)}};
}

}  // namespace motley
