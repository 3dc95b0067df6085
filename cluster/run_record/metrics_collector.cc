#include "cluster/run_record/metrics_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

// The vote before each step keeps ranks within one step of each other, but on a busy machine the
// launcher may read one worker's reports well before another's. Beyond this limit they are invalid.
constexpr std::size_t kOpenStepsMax = 1024;

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// The first rank with targets determines the result.
void add_evaluation(const Evaluation& evaluation, bool has_perplexity, StepMetrics& metrics) {
  if (evaluation.tokens == 0) metrics.eval_without_targets = true;
  if (evaluation.tokens == 0 || metrics.eval_loss) return;
  metrics.eval_loss = evaluation.loss;
  if (has_perplexity) metrics.eval_perplexity = std::exp(evaluation.loss);
  metrics.eval_accuracy = evaluation.accuracy;
  metrics.eval_top5_accuracy = evaluation.top5_accuracy;
  if (evaluation.bytes_per_token > 0) {
    metrics.eval_bits_per_byte = evaluation.loss / std::numbers::ln2 / evaluation.bytes_per_token;
  }
}

}  // namespace

MetricsCollector::MetricsCollector(int rank_count, double predicted_step_s, LossMeaning loss)
    : rank_count_(rank_count), predicted_step_s_(predicted_step_s), loss_(loss) {
  MOTLEY_CHECK(rank_count > 0, "{} ranks", rank_count);
}

Result<std::optional<StepMetrics>> MetricsCollector::add(Rank rank, const StepReport& report) {
  MOTLEY_CHECK(rank.value >= 0 && rank.value < rank_count_, "rank {} of {}", rank.value,
               rank_count_);
  const auto out_of_order = [&](const char* cause) {
    return Error{ErrorCode::kPeer,
                 fmt::format("rank {} reported step {} out of order", rank.value, report.step),
                 cause, "use the same version of Motley on every machine"};
  };
  if (report.step <= last_complete_) return out_of_order("all ranks have already reported it");
  Reports& reports = open_[report.step];
  reports.resize(static_cast<std::size_t>(rank_count_));
  if (!report.sent.empty() && report.sent.back().to.value >= rank_count_) {
    return Error{ErrorCode::kPeer,
                 fmt::format("rank {} reports bytes sent to rank {} in step {}", rank.value,
                             report.sent.back().to.value, report.step),
                 fmt::format("the plan has {} ranks", rank_count_),
                 "use the same version of Motley on every machine"};
  }
  if (reports[rank.index()]) return out_of_order("it reported it twice");
  reports[rank.index()] = report;
  if (open_.size() > kOpenStepsMax) return out_of_order("other ranks are several steps behind");
  if (!std::all_of(reports.begin(), reports.end(), [](const auto& r) { return r.has_value(); })) {
    return std::optional<StepMetrics>();
  }
  if (report.step != open_.begin()->first) return out_of_order("an earlier step is not complete");
  MOTLEY_ASSIGN(StepMetrics metrics, combine(reports));
  last_complete_ = report.step;
  open_.erase(report.step);
  return std::optional<StepMetrics>(std::move(metrics));
}

Result<StepMetrics> MetricsCollector::combine(const Reports& reports) const {
  const StepReport& first = *reports.front();
  StepMetrics metrics{.step = first.step,
                      .outcome = first.outcome,
                      .predicted_step_s = predicted_step_s_,
                      .without_targets = first.outcome.tokens == 0 && !first.outcome.skipped,
                      .is_computed = loss_.is_computed};
  double compute_s = 0;
  double longest_s = 0;  // the longest compute time of a rank
  double codec_s = 0;
  double optimizer_s = 0;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const StepReport& report = *reports[rank];
    if (!same_bits(report.outcome.loss, first.outcome.loss)) {
      return Error{
          ErrorCode::kInternal,
          fmt::format("rank {} and rank 0 report different losses in step {}", rank, first.step),
          fmt::format("{} and {}", report.outcome.loss, first.outcome.loss),
          "this is a bug: please report it with the run's plan.json"};
    }
    metrics.step_s = std::max(metrics.step_s, report.step_s);
    metrics.wire_bytes += report.wire_bytes;
    metrics.wait_s.push_back(report.times.wait_s.total());
    metrics.ranks.push_back({report.times, report.memory_bytes});
    for (const StepReport::Sent& sent : report.sent) {
      metrics.links.push_back({Rank{static_cast<std::int32_t>(rank)}, sent.to, sent.bytes});
    }
    compute_s += report.times.compute_s;
    longest_s = std::max(longest_s, report.times.compute_s);
    codec_s += report.times.codec_s;
    optimizer_s += report.times.optimizer_s;
    if (report.evaluation) add_evaluation(*report.evaluation, loss_.has_perplexity, metrics);
  }
  const double all_s = rank_count_ * metrics.step_s;
  metrics.bubble = 1 - ratio(compute_s, all_s);
  metrics.losses.imbalance = ratio(rank_count_ * longest_s - compute_s, all_s);
  metrics.losses.links_and_filling = metrics.bubble - metrics.losses.imbalance;
  metrics.losses.codec = ratio(codec_s, all_s);
  metrics.losses.optimizer = ratio(optimizer_s, all_s);
  return metrics;
}

}  // namespace motley
