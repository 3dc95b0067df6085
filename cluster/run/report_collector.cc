#include "cluster/run/report_collector.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/median.h"
#include "cluster/launch/workers.h"
#include "compression/codec/codec.h"
#include "compression/codec_chain.h"
#include "partitioner/search/planner.h"
#include "pipeline/schedule/sum_group.h"

namespace motley {
namespace {

constexpr std::int64_t kStepsKept = 4096;
constexpr double kFloatBytes = 4;

// The floats that cross the boundary after a layer for one micro-batch, one way.
double boundary_floats(const Plan& plan, const ModelSpec& model, int layer) {
  const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
  return static_cast<double>(spec.output_floats_per_sample) * plan.micro_batch;
}

// "box", or "box+desktop" of a shared stage.
std::string machines_of(const Plan& plan, const ChunkPlan& chunk) {
  std::string names;
  for (const Replica& replica : chunk.replicas) {
    names += (names.empty() ? "" : "+") + plan.ranks[replica.rank.index()].machine;
  }
  return names;
}

// Each boundary between ranks, and to `sent_bytes` [Rank] what its two sides send over it.
Result<std::vector<LinkReport>> predict_links(const Plan& plan,
                                              const ModelSpec& model,
                                              std::vector<double>& sent_bytes) {
  std::vector<LinkReport> links;
  for (std::size_t c = 0; c + 1 < plan.chunks.size(); ++c) {
    const double floats = boundary_floats(plan, model, plan.chunks[c + 1].first_layer - 1);
    MOTLEY_ASSIGN(const auto codec, make_codec(plan.chunks[c].codec));
    const auto bytes = static_cast<double>(codec->bytes_max(static_cast<std::size_t>(floats)));
    const std::vector<Rank> before = micro_batch_owners(plan.chunks[c], plan.micro_batches);
    const std::vector<Rank> behind = micro_batch_owners(plan.chunks[c + 1], plan.micro_batches);
    int messages = 0;  // in each direction
    for (std::size_t m = 0; m < before.size(); ++m) {
      if (before[m] == behind[m]) continue;
      ++messages;
      sent_bytes[before[m].index()] += bytes;
      sent_bytes[behind[m].index()] += bytes;
    }
    if (messages == 0) continue;
    links.push_back({static_cast<int>(c), machines_of(plan, plan.chunks[c]),
                     machines_of(plan, plan.chunks[c + 1]), plan.chunks[c].codec,
                     2 * bytes * messages, 2 * kFloatBytes * floats * messages});
  }
  return links;
}

// What each rank sends in a sum over some of them: inside machines as fp32, between them through
// the plan's codec.
void predict_sum(const Plan& plan,
                 const Codec& codec,
                 const std::set<Rank>& ranks,
                 std::int64_t parameters,
                 std::vector<double>& sent_bytes) {
  if (ranks.size() < 2) return;
  const SumGroup group = sum_group(plan, std::vector<Rank>(ranks.begin(), ranks.end()));
  const AllreducePlan sum(group.machines, static_cast<std::size_t>(parameters),
                          AllreducePlan::kWhole, group.link_speeds);
  for (const ReduceMessage& message : sum.all_messages()) {
    const bool inside = message.phase == ReducePhase::kLocalReduceScatter ||
                        message.phase == ReducePhase::kLocalAllGather;
    const auto count = static_cast<double>(message.values.count);
    sent_bytes[message.from.index()] +=
        inside ? kFloatBytes * count : static_cast<double>(codec.bytes_max(message.values.count));
  }
}

// Replicas of a stage sum their gradients, and all ranks with a use of it that of a tied parameter.
Result<void> predict_sums(const Plan& plan,
                          const ModelSpec& model,
                          std::vector<double>& sent_bytes) {
  MOTLEY_ASSIGN(const auto codec, make_codec(plan.gradient_codec));
  const bool tied = tied_across_ranks(model, plan);
  std::set<Rank> users;
  std::int64_t tied_parameters = 0;
  for (const ChunkPlan& chunk : plan.chunks) {
    std::set<Rank> holders;
    for (const Replica& replica : chunk.replicas) holders.insert(replica.rank);
    std::int64_t parameters = 0;
    for (int l = chunk.first_layer; l < chunk.first_layer + chunk.layer_count; ++l) {
      for (const ParameterSpec& spec : model.layers[static_cast<std::size_t>(l)].parameters) {
        const auto count = static_cast<std::int64_t>(spec.count());
        if (tied && spec.name == model.tied_pair()->parameter) {
          users.insert(holders.begin(), holders.end());
          tied_parameters = count;
        } else {
          parameters += count;
        }
      }
    }
    predict_sum(plan, *codec, holders, parameters, sent_bytes);
  }
  predict_sum(plan, *codec, users, tied_parameters, sent_bytes);
  return {};
}

}  // namespace

void ReportCollector::add_step(Rank rank, const StepReport& report) {
  RankSteps& own = ranks_[rank.index()];
  own.last_step = report.step;
  if (own.count++ == 0) {
    own.first_step = report.step;
    return;
  }
  const StepTimes times{report.step_s, report.compute_s, report.wait_s,
                        static_cast<double>(report.wire_bytes)};
  if (own.count - 1 <= kStepsKept) {
    own.steps.push_back(times);
  } else {
    own.steps[static_cast<std::size_t>((own.count - 2) % kStepsKept)] = times;
  }
}

void ReportCollector::add_peak(Rank rank, std::int64_t peak_bytes) {
  ranks_[rank.index()].peak_bytes = peak_bytes;
}

double ReportCollector::median(const RankSteps& rank, double StepTimes::*field) const {
  if (rank.steps.empty()) return 0;
  std::vector<double> values;
  for (const StepTimes& step : rank.steps) values.push_back(step.*field);
  return motley::median(std::move(values));
}

Result<RunReport> ReportCollector::report(const Plan& plan, const ModelSpec& model) const {
  RunReport report;
  report.first_step = ranks_.front().first_step;
  report.last_step = ranks_.front().last_step;
  report.measured_steps = static_cast<std::int64_t>(ranks_.front().steps.size());
  report.step_s.predicted = plan.predicted_step_s;
  std::vector<double> sent_bytes(ranks_.size(), 0);
  MOTLEY_ASSIGN(report.links, predict_links(plan, model, sent_bytes));
  MOTLEY_TRY(predict_sums(plan, model, sent_bytes));
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const RankSteps& own = ranks_[r];
    const RankPlan& planned = plan.ranks[r];
    // A step ends with the slowest rank.
    report.step_s.measured = std::max(report.step_s.measured, median(own, &StepTimes::step_s));
    report.ranks.push_back({.name = rank_name(plan, Rank{static_cast<std::int32_t>(r)}),
                            .machine = planned.machine,
                            .device = planned.device,
                            .compute_s = {planned.compute_s, median(own, &StepTimes::compute_s)},
                            .wait_s = median(own, &StepTimes::wait_s),
                            .memory_bytes = {static_cast<double>(planned.memory_bytes),
                                             static_cast<double>(own.peak_bytes)},
                            .sent_bytes = {sent_bytes[r], median(own, &StepTimes::sent_bytes)}});
  }
  return report;
}

}  // namespace motley
