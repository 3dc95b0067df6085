#include "partitioner/search/simulate_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "partitioner/cost/cost_model.h"
#include "pipeline/schedule/schedules.h"

namespace motley {
namespace {

class Simulation {
 public:
  Simulation(const Plan& plan,
             const ModelSpec& model,
             const Cluster& cluster,
             const Profile& profile,
             const PlanOptions& options)
      : plan_(plan), model_(model), cluster_(cluster), profile_(profile), options_(options) {}

  [[nodiscard]] Result<CostModel> cost(const std::string& gradient_codec) const {
    return CostModel::make(model_, cluster_, profile_, options_.default_threads,
                           process_state_of(options_, plan_), gradient_codec);
  }

  // The mean step of a round: a local step, and a share of what the round's all-reduces take longer
  // than the steps during which they run.
  [[nodiscard]] Result<SimulatedStep> mean_step(const SimulateOptions& how) const {
    MOTLEY_ASSIGN(SimulatedStep mean, local_step(how));
    MOTLEY_ASSIGN(const double exchange_s, exchange());
    const RoundsPlan& rounds = *plan_.rounds;
    const double hidden_s = static_cast<double>(rounds.overlap_steps) * mean.step_s;
    const double rest_s = std::max(exchange_s - hidden_s, 0.0) / static_cast<double>(rounds.steps);
    for (std::size_t r = 0; r < mean.wait_s.size(); ++r) {
      mean.wait_link_s[r] += rest_s;
      add_wait(r, mean.step_s, rest_s, ActionKind::kAdopt, how, mean);
    }
    mean.step_s += rest_s;
    return mean;
  }

 private:
  // Each island alone, which then waits for the votes of the others.
  [[nodiscard]] Result<SimulatedStep> local_step(const SimulateOptions& how) const {
    // Islands all-reduce exact values.
    MOTLEY_ASSIGN(const CostModel costs, cost("none"));
    MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan_, costs));
    SimulatedStep step;
    for (auto* times :
         {&step.compute_s, &step.codec_s, &step.wait_s, &step.wait_sender_s, &step.wait_link_s}) {
      times->assign(plan_.ranks.size(), 0);
    }
    for (std::size_t i = 0; i < plan_.rounds->islands.size(); ++i) {
      const Plan part = plan_of_island(plan_, static_cast<int>(i));
      MOTLEY_ASSIGN(const Schedule schedule, make_schedule(part, tied_across_ranks(model_, part)));
      MOTLEY_ASSIGN(SimulatedStep own, simulate_step(schedule, part, model_, costs, slots, how));
      step.step_s = std::max(step.step_s, own.step_s);
      take(plan_.rounds->islands[i], std::move(own), step);
    }
    for (std::size_t r = 0; r < step.wait_s.size(); ++r) {
      const double end_s = step.compute_s[r] + step.codec_s[r] + step.wait_s[r];
      step.wait_sender_s[r] += step.step_s - end_s;
      add_wait(r, end_s, step.step_s - end_s, ActionKind::kVote, how, step);
    }
    return step;
  }

  // Copies what concerns these ranks.
  static void take(const std::vector<Rank>& ranks, SimulatedStep from, SimulatedStep& to) {
    for (const Rank rank : ranks) {
      const std::size_t r = rank.index();
      to.compute_s[r] = from.compute_s[r];
      to.codec_s[r] = from.codec_s[r];
      to.wait_s[r] = from.wait_s[r];
      to.wait_sender_s[r] = from.wait_sender_s[r];
      to.wait_link_s[r] = from.wait_link_s[r];
    }
    std::ranges::copy_if(from.spans, std::back_inserter(to.spans), [&](const TraceSpan& span) {
      return std::ranges::find(ranks, span.rank) != ranks.end();
    });
  }

  static void add_wait(std::size_t rank,
                       double start_s,
                       double seconds,
                       ActionKind kind,
                       const SimulateOptions& how,
                       SimulatedStep& step) {
    step.wait_s[rank] += seconds;
    if (!how.spans || seconds <= 0) return;
    step.spans.push_back({{static_cast<std::int32_t>(rank)},
                          "wait",
                          to_text(Action{kind, {}, {}}),
                          start_s,
                          seconds,
                          0});
  }

  // The time of a round's all-reduces, while nothing else uses the links.
  [[nodiscard]] Result<double> exchange() const {
    MOTLEY_ASSIGN(const CostModel costs, cost(plan_.rounds->codec));
    MOTLEY_TRY(costs.check_codec(plan_.rounds->codec));
    MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan_, costs));
    MOTLEY_ASSIGN(const SimulatedStep step,
                  simulate_step(exchange_schedule(plan_), plan_, model_, costs, slots));
    return step.step_s;
  }

  const Plan& plan_;
  const ModelSpec& model_;
  const Cluster& cluster_;
  const Profile& profile_;
  const PlanOptions& options_;
};

}  // namespace

Result<SimulatedPlan> simulate_plan(const Plan& plan,
                                    const ModelSpec& model,
                                    const Cluster& cluster,
                                    const Profile& profile,
                                    const PlanOptions& options,
                                    const SimulateOptions& how) {
  const Simulation simulation(plan, model, cluster, profile, options);
  MOTLEY_ASSIGN(const CostModel cost, simulation.cost(plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  SimulatedPlan simulated;
  MOTLEY_ASSIGN(simulated.schedule, make_schedule(plan, tied_across_ranks(model, plan)));
  if (plan.rounds) {
    MOTLEY_ASSIGN(simulated.step, simulation.mean_step(how));
  } else {
    MOTLEY_ASSIGN(simulated.step, simulate_step(simulated.schedule, plan, model, cost, slots, how));
  }
  simulated.memory = peak_memory(simulated.schedule, plan, cost, slots);
  return simulated;
}

}  // namespace motley
