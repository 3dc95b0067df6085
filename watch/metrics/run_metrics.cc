#include "watch/metrics/run_metrics.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/system/version.h"
#include "plan/rank_names.h"
#include "plan/step_times.h"

namespace motley {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Collects families. Unknown values are left out: a gap is better than a wrong number.
class Gathering {
 public:
  // Starts a family; the following samples belong to it.
  Gathering& family(MetricType type, const char* name, const char* unit, const char* help) {
    families_.push_back({name, type, unit, help, {}});
    return *this;
  }

  Gathering& sample(double value, Labels labels = {}, const char* suffix = "") {
    if (std::isfinite(value)) {
      families_.back().samples.push_back({std::move(labels), value, suffix});
    }
    return *this;
  }

  Gathering& count(std::int64_t value, Labels labels = {}, const char* suffix = "") {
    return sample(static_cast<double>(value), std::move(labels), suffix);
  }

  // A state set in which only `now` is 1.
  Gathering& states(const char* name, const char* help, const auto& all, const std::string& now) {
    family(MetricType::kStateSet, name, "", help);
    for (const char* state : all) sample(state == now ? 1 : 0, {{name, state}});
    return *this;
  }

  [[nodiscard]] std::vector<MetricFamily> done() && {
    std::erase_if(families_, [](const MetricFamily& family) { return family.samples.empty(); });
    return std::move(families_);
  }

 private:
  std::vector<MetricFamily> families_;
};

double known(double value) {
  return value > 0 ? value : kUnknown;
}

Labels of_rank(std::size_t rank) {
  return {{"rank", std::to_string(rank)}};
}

Labels of_link(Rank from, Rank to) {
  return {{"from", std::to_string(from.value)}, {"to", std::to_string(to.value)}};
}

void add_run(const RunView& view, Gathering& all) {
  all.family(MetricType::kInfo, "motley_build", "", "The program that exports these metrics.")
      .sample(1, {{"version", motley_version()}});
  all.family(MetricType::kInfo, "motley_run", "", "The run of these metrics.")
      .sample(1, {{"run", view.name()},
                  {"model", view.config() ? model_text(view.config()->model) : ""}});
  constexpr std::array kPhases = {RunPhase::kPreparing, RunPhase::kTraining, RunPhase::kRestarting,
                                  RunPhase::kEnded,     RunPhase::kStopped,  RunPhase::kFailed,
                                  RunPhase::kSilent};
  std::array<const char*, kPhases.size()> phases{};
  for (std::size_t p = 0; p < phases.size(); ++p) phases[p] = run_phase_word(kPhases[p]);
  all.states("motley_run_state", "Whether the run is in progress, or how it ended.", phases,
             run_phase_word(view.phase()));
  constexpr std::array kLevels = {HealthLevel::kGood, HealthLevel::kWatch, HealthLevel::kBad};
  std::array<const char*, kLevels.size()> levels{};
  for (std::size_t l = 0; l < levels.size(); ++l) levels[l] = health_level_name(kLevels[l]);
  all.states("motley_verdict", "The health summary of the run, as on its page.", levels,
             health_level_name(view.health().level));
  if (view.config()) {
    all.family(MetricType::kGauge, "motley_run_planned_steps", "", "Steps of the run.")
        .count(view.config()->train.steps);
  }
}

// Totals of a long run are unknown until it has been read completely.
void add_reading(const RunView& view, Gathering& all) {
  const auto& reading = view.reading();
  const double read = reading && reading->bytes > 0 ? static_cast<double>(reading->read_bytes) /
                                                          static_cast<double>(reading->bytes)
                                                    : 1;
  all.family(MetricType::kGauge, "motley_run_read_ratio", "ratio",
             "Share of the run's files that was read; their metrics are exported when it is 1.")
      .sample(read);
}

void add_last_step(const RunView& view, Gathering& all) {
  all.family(MetricType::kGauge, "motley_run_last_step", "", "Number of the last completed step.")
      .count(view.last_step());
  const StepMetrics* const last = view.recent().last();
  if (last == nullptr) return;
  const auto gauge = [&all](const char* name, const char* unit, const char* help, double value) {
    all.family(MetricType::kGauge, name, unit, help).sample(value);
  };
  gauge("motley_last_step_timestamp_seconds", "seconds",
        "Time at which the last step was completed.", known(last->time_s));
  gauge("motley_loss", "", "Training loss of the last step, in nats.", last->outcome.loss);
  gauge("motley_learning_rate", "", "Learning rate of the last step.", last->outcome.lr);
  gauge("motley_gradient_norm", "", "Norm of the last step's gradient before clipping.",
        last->outcome.grad_norm);
  gauge("motley_step_predicted_seconds", "seconds", "Predicted time of a step.",
        known(last->predicted_step_s));
  gauge("motley_bubble_ratio", "ratio", "Share of the ranks' time without computing, last step.",
        last->bubble);
  all.family(MetricType::kGauge, "motley_time_lost_ratio", "ratio",
             "Share of the ranks' time that was not spent in layers, by cause, last step.")
      .sample(last->losses.imbalance, {{"cause", "imbalance"}})
      .sample(last->losses.links_and_filling, {{"cause", "links_and_filling"}})
      .sample(last->losses.codec, {{"cause", "codec"}})
      .sample(last->losses.optimizer, {{"cause", "optimizer"}});
}

void add_evaluation(const HeldOutResult& last, Gathering& all) {
  const auto gauge = [&all](const char* name, const char* help,
                            const std::optional<double>& value) {
    all.family(MetricType::kGauge, name, "", help).sample(value.value_or(kUnknown));
  };
  gauge("motley_eval_loss", "Loss of the last evaluation, in nats.", last.loss);
  gauge("motley_eval_perplexity", "Perplexity of the last evaluation's tokens.", last.perplexity);
  gauge("motley_eval_accuracy",
        "Share of the last evaluation's targets that had the highest score.", last.accuracy);
  gauge("motley_eval_top5_accuracy",
        "Share of the last evaluation's targets among the five highest scores.",
        last.top5_accuracy);
}

void add_totals(const RunView& view, Gathering& all) {
  const RunTotals::Totals& sums = view.totals().sums();
  all.family(MetricType::kSummary, "motley_step_seconds", "seconds",
             "Time of a step: the median of the newest, and the sum over all completed steps.")
      .sample(view.recent().step_s(), {{"quantile", "0.5"}})
      .sample(sums.step_s, {}, "_sum")
      .count(sums.steps, {}, "_count");
  const auto counter = [&all](const char* name, const char* unit, const char* help, double value) {
    all.family(MetricType::kCounter, name, unit, help).sample(value);
  };
  counter("motley_tokens", "", "Trained tokens.", sums.tokens);
  counter("motley_steps_skipped", "", "Steps whose gradient was not finite.",
          static_cast<double>(sums.skipped));
  counter("motley_steps_without_targets", "", "Steps whose global batch had no target.",
          static_cast<double>(sums.without_targets));
  counter("motley_sent_bytes", "bytes", "Bytes sent between ranks.", sums.sent_bytes);
  all.family(MetricType::kCounter, "motley_events", "", "Events, by kind.");
  for (const auto& [kind, count] : sums.events) {
    all.count(count, {{"kind", run_event_word(kind)}});
  }
  if (sums.evaluation) add_evaluation(*sums.evaluation, all);
  if (!sums.saved) return;
  all.family(MetricType::kGauge, "motley_checkpoint_last_step", "", "Step of the last checkpoint.")
      .count(sums.saved->first);
  all.family(MetricType::kGauge, "motley_checkpoint_timestamp_seconds", "seconds",
             "Time at which the last checkpoint was committed.")
      .sample(sums.saved->second);
}

void add_rank_totals(const RunTotals::Totals& sums, Gathering& all) {
  const auto counter = [&](const char* name, const char* help, double StepTimes::*field) {
    all.family(MetricType::kCounter, name, "seconds", help);
    for (std::size_t r = 0; r < sums.ranks.size(); ++r) {
      all.sample(sums.ranks[r].*field, of_rank(r));
    }
  };
  counter("motley_rank_compute_seconds", "Time in which the rank did not wait.",
          &StepTimes::compute_s);
  counter("motley_rank_codec_seconds",
          "Part of its computing: encoding, decoding and passing messages.", &StepTimes::codec_s);
  counter("motley_rank_optimizer_seconds", "Part of its computing: the update.",
          &StepTimes::optimizer_s);
  all.family(MetricType::kCounter, "motley_rank_wait_seconds", "seconds",
             "Time in which the rank waited, by cause.");
  for (std::size_t r = 0; r < sums.ranks.size(); ++r) {
    for (std::size_t cause = 0; cause < kWaitCauseNames.size(); ++cause) {
      Labels labels = of_rank(r);
      labels.emplace_back("cause", kWaitCauseNames[cause]);
      all.sample(sums.ranks[r].wait_s.seconds[cause], std::move(labels));
    }
  }
  all.family(MetricType::kCounter, "motley_link_sent_bytes", "bytes",
             "Bytes sent from one rank to another.");
  for (const auto& [link, bytes] : sums.link_bytes) {
    all.sample(bytes, of_link(link.first, link.second));
  }
}

void add_memory(const RunView& view, Gathering& all) {
  const StepMetrics* const last = view.recent().last();
  if (last == nullptr) return;
  all.family(MetricType::kGauge, "motley_rank_memory_bytes", "bytes",
             "Memory of the rank's process.");
  for (std::size_t r = 0; r < last->ranks.size(); ++r) {
    all.sample(known(static_cast<double>(last->ranks[r].memory_bytes)), of_rank(r));
  }
}

void add_plan_sizes(const Plan& plan, const RunLayout& layout, Gathering& all) {
  all.family(MetricType::kInfo, "motley_plan", "", "The plan in use.")
      .sample(1, {{"hash", plan_hash_text(plan)}, {"schedule", plan.schedule}});
  const std::vector<std::string> names = rank_names(plan);
  all.family(MetricType::kInfo, "motley_rank", "", "Machine, device and layers of a rank.");
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    Labels labels = of_rank(r);
    labels.emplace_back("stage", names[r]);
    labels.emplace_back("machine", plan.ranks[r].machine);
    labels.emplace_back("device", plan.ranks[r].device);
    all.sample(1, std::move(labels));
  }
  all.family(MetricType::kGauge, "motley_rank_predicted_compute_seconds", "seconds",
             "Predicted computing time of the rank in a step.");
  for (std::size_t r = 0; r < layout.ranks.size(); ++r) {
    all.sample(known(layout.ranks[r].predicted_compute_s), of_rank(r));
  }
  all.family(MetricType::kGauge, "motley_rank_memory_limit_bytes", "bytes",
             "Memory limit of the rank's process in the plan.");
  for (std::size_t r = 0; r < layout.ranks.size(); ++r) {
    all.sample(known(static_cast<double>(layout.ranks[r].memory_limit_bytes)), of_rank(r));
  }
  all.family(MetricType::kInfo, "motley_link", "", "The machines of a link, and its codec.");
  for (const LayoutLink& link : layout.links) {
    Labels labels = of_link(link.from, link.to);
    labels.emplace_back("from_machine", plan.ranks[link.from.index()].machine);
    labels.emplace_back("to_machine", plan.ranks[link.to.index()].machine);
    labels.emplace_back("codec", link.codec);
    all.sample(1, std::move(labels));
  }
  all.family(MetricType::kGauge, "motley_link_bandwidth_bytes_per_second", "bytes_per_second",
             "Values assumed by the plan.");
  for (const LayoutLink& link : layout.links) {
    all.sample(known(link.bandwidth_bytes_per_s), of_link(link.from, link.to));
  }
}

}  // namespace

std::vector<MetricFamily> run_metrics(const RunView& view) {
  Gathering all;
  add_run(view, all);
  add_reading(view, all);
  if (view.reading()) return std::move(all).done();
  add_last_step(view, all);
  add_totals(view, all);
  add_rank_totals(view.totals().sums(), all);
  add_memory(view, all);
  if (view.layout()) add_plan_sizes(*view.plan(), *view.layout(), all);
  return std::move(all).done();
}

}  // namespace motley
