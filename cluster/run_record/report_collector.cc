#include "cluster/run_record/report_collector.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/median.h"
#include "cluster/run_record/codec_bounds.h"
#include "partitioner/cost/step_bytes.h"
#include "pipeline/schedule/action_rules.h"
#include "plan/rank_names.h"

namespace motley {
namespace {

constexpr std::int64_t kStepsKept = 4096;

// "box", or "box+desktop" for a stage with replicas.
std::string machines_of(const Plan& plan, const ChunkPlan& chunk) {
  std::string names;
  for (const Replica& replica : chunk.replicas) {
    names += (names.empty() ? "" : "+") + plan.ranks[replica.rank.index()].machine;
  }
  return names;
}

// The traffic of each boundary between ranks.
std::vector<LinkReport> predict_links(const Plan& plan,
                                      const ModelSizes& sizes,
                                      const CodecBounds& codecs) {
  std::vector<LinkReport> links;
  const auto owners = owners_of(plan);
  const ActionRules rules(owners);
  for (std::size_t c = 0; c + 1 < plan.chunks.size(); ++c) {
    const BoundarySize size = sizes.boundary(plan.chunks[c + 1].first_layer - 1, plan.micro_batch);
    int activations = 0;
    int gradients = 0;
    const ChunkId before{static_cast<std::int32_t>(c)};
    for (MicroId micro{0}; micro.value < plan.micro_batches; ++micro.value) {
      activations += rules.crosses({ValueKind::kActivation, {before.value + 1}, micro}) ? 1 : 0;
      gradients += rules.crosses({ValueKind::kGradient, before, micro}) ? 1 : 0;
    }
    if (activations + gradients == 0) continue;
    const std::string& codec = plan.chunks[c].codec;
    const double exact_bytes = activations * static_cast<double>(size.exact_bytes);
    const auto payload_bytes = [&](const std::string& by) {
      return (activations + gradients) * codecs.payload_bytes(by, size.floats) + exact_bytes;
    };
    links.push_back({static_cast<int>(c), machines_of(plan, plan.chunks[c]),
                     machines_of(plan, plan.chunks[c + 1]), codec, payload_bytes(codec),
                     payload_bytes("none")});
  }
  return links;
}

// The median of `value` over the steps, or the mean if `in_rounds`, since the last step of a round
// takes longer; 0 without steps.
double typical_of(const auto& steps, const auto& value, bool in_rounds) {
  std::vector<double> values;
  for (const auto& step : steps) values.push_back(static_cast<double>(value(step)));
  if (values.empty()) return 0;
  if (!in_rounds) return median(std::move(values));
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void ReportCollector::add_step(Rank rank, const StepReport& report) {
  RankSteps& own = ranks_[rank.index()];
  own.last_step = report.step;
  if (own.count++ == 0) {
    own.first_step = report.step;
    return;
  }
  const MeasuredStep step{report.step_s, report.times, report.wire_bytes};
  if (own.count - 1 <= kStepsKept) {
    own.steps.push_back(step);
  } else {
    own.steps[static_cast<std::size_t>((own.count - 2) % kStepsKept)] = step;
  }
}

void ReportCollector::add_peak(Rank rank, std::int64_t peak_bytes) {
  ranks_[rank.index()].peak_bytes = peak_bytes;
}

Result<RunReport> ReportCollector::report(const Plan& plan, const ModelSpec& model) const {
  RunReport report;
  report.first_step = ranks_.front().first_step;
  report.end.last_step = ranks_.front().last_step;
  report.measured_steps = static_cast<std::int64_t>(ranks_.front().steps.size());
  report.plan_hash = plan_hash_text(plan);
  report.step_s.predicted = plan.predicted_step_s;
  MOTLEY_ASSIGN(const CodecBounds codecs, CodecBounds::of(plan));
  const ModelSizes sizes(model);
  report.links = predict_links(plan, sizes, codecs);
  const StepBytes bytes(plan, sizes,
                        [&](Rank /*from*/, std::int64_t values, const std::string& codec) {
                          return codecs.payload_bytes(codec, values);
                        });
  const std::vector<double> sent = sent_bytes(plan, bytes);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const RankSteps& own = ranks_[r];
    const RankPlan& planned = plan.ranks[r];
    const auto of = [&](const auto& value) {
      return typical_of(own.steps, value, plan.rounds.has_value());
    };
    // A step ends with the slowest rank.
    report.step_s.measured =
        std::max(report.step_s.measured, of([](const MeasuredStep& step) { return step.step_s; }));
    report.ranks.push_back(
        {.name = rank_name(plan, Rank{static_cast<std::int32_t>(r)}),
         .machine = planned.machine,
         .device = planned.device,
         .compute_s = {planned.compute_s,
                       of([](const MeasuredStep& step) { return step.times.compute_s; })},
         .wait_s = of([](const MeasuredStep& step) { return step.times.wait_s.total(); }),
         .allreduce_wait_s =
             of([](const MeasuredStep& step) { return step.times.wait_s.of(WaitCause::kSum); }),
         .memory_bytes = {static_cast<double>(planned.memory_bytes),
                          static_cast<double>(own.peak_bytes)},
         .sent_bytes = {sent[r], of([](const MeasuredStep& step) { return step.wire_bytes; })},
         .data_s = of([](const MeasuredStep& step) { return step.times.data_s; })});
  }
  return report;
}

}  // namespace motley
