#include "partitioner/report/plan_analysis.h"

#include <algorithm>
#include <map>
#include <utility>

#include "partitioner/cost/step_prices.h"
#include "partitioner/search/simulate_plan.h"

namespace motley {
namespace {

constexpr std::size_t kMachinesWeighed = 16;

bool is_work(const TraceSpan& span) {
  return span.lane == "compute" && !span.name.starts_with('S');
}

std::vector<RankTime> rank_times(const SimulatedStep& step) {
  std::vector<RankTime> ranks(step.compute_s.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    double first_s = step.step_s;
    double last_s = 0;
    for (const TraceSpan& span : step.spans) {
      if (span.rank.index() != r || !is_work(span)) continue;
      first_s = std::min(first_s, span.start_s);
      last_s = std::max(last_s, span.start_s + span.duration_s);
    }
    double drain_s = 0;
    for (const TraceSpan& span : step.spans) {
      if (span.rank.index() == r && span.lane == "wait" && span.start_s >= last_s) {
        drain_s += span.duration_s;
      }
    }
    RankTime& time = ranks[r];
    time.compute_s = step.compute_s[r];
    time.codec_s = step.codec_s[r];
    time.wait_link_s = step.wait_link_s[r];
    // A rank's stream may end before the last one's; the rest counts as draining.
    const double busy_s = time.compute_s + time.codec_s;
    const double rest_s = std::max(0.0, step.step_s - busy_s - step.wait_s[r]);
    const double stage_s = step.wait_sender_s[r];
    time.fill_s = std::min(first_s, stage_s);
    time.drain_s = std::min(drain_s, stage_s - time.fill_s);
    time.wait_stage_s = stage_s - time.fill_s - time.drain_s;
    time.drain_s += rest_s;
  }
  return ranks;
}

// Bytes and busy time of every direction between two machines.
class LinkUses {
 public:
  LinkUses(const Plan& plan, const Schedule& schedule, const StepPrices& prices)
      : plan_(plan), schedule_(schedule), prices_(prices) {
    for (int c = 0; c + 1 < plan.chunk_count(); ++c) add_boundary(c);
    for (int c = 0; c < plan.chunk_count(); ++c) {
      add_allreduce(prices.reduce(static_cast<std::size_t>(c)));
    }
    add_allreduce(prices.reduce_tied());
    add_targets();
    add_votes();
  }

  std::vector<LinkUse> with_times(const std::vector<TraceSpan>& spans) {
    constexpr std::string_view kLane = "link to ";
    for (const TraceSpan& span : spans) {
      if (!span.lane.starts_with(kLane)) continue;
      const Rank to{static_cast<std::int32_t>(std::stoi(span.lane.substr(kLane.size())))};
      LinkUse& link = use(span.rank, to);
      link.busy_s += span.duration_s;
    }
    std::vector<LinkUse> uses;
    for (auto& [ends, link] : uses_) {
      if (link.from != link.to) uses.push_back(std::move(link));
    }
    std::stable_sort(uses.begin(), uses.end(),
                     [](const LinkUse& a, const LinkUse& b) { return a.busy_s > b.busy_s; });
    return uses;
  }

 private:
  LinkUse& use(Rank from, Rank to) {
    const std::string& from_name = plan_.ranks[from.index()].machine;
    const std::string& to_name = plan_.ranks[to.index()].machine;
    return uses_.try_emplace({from_name, to_name}, LinkUse{from_name, to_name, 0, 0}).first->second;
  }

  Rank owner(int chunk, int micro) const { return schedule_.owner(ChunkId{chunk}, MicroId{micro}); }

  void add_boundary(int chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    for (int m = 0; m < plan_.micro_batches; ++m) {
      const Rank before = owner(chunk, m);
      const Rank behind = owner(chunk + 1, m);
      if (before == behind) continue;
      use(before, behind).bytes += prices_.activation_bytes(c);
      use(behind, before).bytes += prices_.gradient_bytes(c);
    }
  }

  // With rounds a step has its share of a round's messages.
  void add_allreduce(const std::vector<ReducePrice>& messages) {
    const double steps = plan_.rounds ? static_cast<double>(plan_.rounds->steps) : 1;
    for (const ReducePrice& price : messages) {
      use(price.message.from, price.message.to).bytes += price.bytes / steps;
    }
  }

  void add_targets() {
    for (int m = 0; m < plan_.micro_batches; ++m) {
      const Rank first = owner(0, m);
      const Rank last = owner(plan_.chunk_count() - 1, m);
      if (first != last) use(first, last).bytes += prices_.target_bytes();
    }
  }

  void add_votes() {
    for (Rank rank{1}; rank.value < plan_.rank_count(); ++rank.value) {
      use(rank, Rank{0}).bytes += prices_.vote_bytes(rank.index());
      use(Rank{0}, rank).bytes += prices_.vote_result_bytes();
    }
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const StepPrices& prices_;
  std::map<std::pair<std::string, std::string>, LinkUse> uses_;  // from, to
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The best step without a machine that is used, or with one that is not.
MachineContribution contribution_of(const PlanningInput& input,
                                    const Plan& present,
                                    const std::string& machine,
                                    bool used) {
  MachineContribution contribution{.machine = machine, .used = used};
  const Pins& pins = input.options.pins;
  contribution.forbidden = contains(pins.never, machine);
  if (contribution.forbidden) return contribution;
  if (used && input.cluster.machines.size() == 1) {
    contribution.why_not = "it is the only machine";
    return contribution;
  }
  PlanningInput varied = used ? without_machine(input, machine) : input;
  if (!used) varied.options.pins.always.push_back(machine);
  const Result<Plan> plan = make_plan(varied);
  if (plan.ok()) {
    contribution.step_s = plan->predicted_step_s;
    if (plan->micro_batch != present.micro_batch) {
      contribution.how = fmt::format(" (by train.micro_batch = {})", plan->micro_batch);
    }
  } else {
    contribution.why_not = used ? plan.error().what : "none was found that uses it";
  }
  return contribution;
}

}  // namespace

Result<PlanAnalysis> analyse_step(const PlanningInput& input, const Plan& plan) {
  const PlanOptions& options = input.options;
  SimulateOptions how;
  how.spans = true;
  MOTLEY_ASSIGN(SimulatedPlan simulated,
                simulate_plan(plan, input.model, input.cluster, input.profile, options, how));
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(input.model, input.cluster, input.profile, options.default_threads,
                                process_state_of(options, plan), plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  const StepPrices prices(plan, cost, slots);
  PlanAnalysis analysis;
  analysis.step_s = simulated.step.step_s;
  analysis.ranks = rank_times(simulated.step);
  analysis.memory = std::move(simulated.memory);
  analysis.links = LinkUses(plan, simulated.schedule, prices).with_times(simulated.step.spans);
  analysis.spans = std::move(simulated.step.spans);
  return analysis;
}

Result<PlanAnalysis> analyse_plan(const PlanningInput& input, const Plan& plan) {
  MOTLEY_ASSIGN(PlanAnalysis analysis, analyse_step(input, plan));
  for (const Machine& machine : input.cluster.machines) {
    if (analysis.machines.size() == kMachinesWeighed) {
      analysis.not_tried.push_back(machine.name);
      continue;
    }
    const bool used = std::any_of(plan.ranks.begin(), plan.ranks.end(), [&](const RankPlan& rank) {
      return rank.machine == machine.name;
    });
    analysis.machines.push_back(contribution_of(input, plan, machine.name, used));
  }
  return analysis;
}

}  // namespace motley
