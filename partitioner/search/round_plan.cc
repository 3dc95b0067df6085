#include "partitioner/search/round_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "partitioner/search/plan_notes.h"
#include "partitioner/search/simulate_plan.h"
#include "plan/rounds/round_loss.h"

namespace motley {
namespace {

// An outer momentum needs some rounds to take effect.
constexpr std::int64_t kLeastRounds = 15;
// The lengths of a round to choose from.
constexpr std::int64_t kRoundSteps[] = {10, 30, 60};
// With overlap, all-reduces of a round should cost next to nothing.
constexpr double kHidden = 1000;

// Of a link that was planned as faster by that factor; 0 stays unknown.
std::int64_t true_mbps(std::int64_t planned, double factor) {
  return planned == 0
             ? 0
             : std::max<std::int64_t>(1, std::llround(static_cast<double>(planned) / factor));
}

// The overlaps to choose from, ascending: shares of a round.
std::vector<std::int64_t> overlaps_of(const RoundOptions& rounds, std::int64_t steps) {
  if (rounds.overlap_steps) return {*rounds.overlap_steps};
  std::vector<std::int64_t> overlaps = {0, (steps + 3) / 4, steps / 2, 3 * steps / 4};
  std::erase_if(overlaps, [&](std::int64_t overlap) { return overlap >= steps; });
  std::ranges::sort(overlaps);
  overlaps.erase(std::ranges::unique(overlaps).begin(), overlaps.end());
  return overlaps;
}

Cluster sped_up(Cluster cluster, double factor) {
  const auto speed_up = [&](LinkSpeed& link) {
    link.bandwidth_bytes_per_s *= factor;
    link.latency_s /= factor;
  };
  speed_up(cluster.network);
  for (LinkOverride& link : cluster.links) speed_up(link.speed);
  return cluster;
}

Profile sped_up(Profile profile, double factor) {
  for (DeviceProfile& device : profile.devices) {
    device.message_s /= factor;
    for (auto& [name, sample] : device.codecs) {
      sample.encode_s_per_float /= factor;
      sample.decode_s_per_float /= factor;
    }
  }
  return profile;
}

// The share asked for, but at least twice the warm-up of the learning rate: rounds that begin while
// parameters still move fast end with a higher loss. A whole number of rounds, so that rounds end
// at multiples of their length.
std::int64_t start_steps_of(const RoundOptions& rounds, std::int64_t steps) {
  if (rounds.synchronous_start == 0) return 0;
  const double share = rounds.synchronous_start * static_cast<double>(rounds.train_steps);
  const double least = std::max(share, 2 * static_cast<double>(rounds.warmup_steps));
  return steps * std::llround(std::ceil(least / static_cast<double>(steps)));
}

std::int64_t round_count(const RoundOptions& rounds, std::int64_t steps) {
  return (rounds.train_steps - start_steps_of(rounds, steps)) / steps;
}

// A momentum acts over 1 / (1 - momentum) rounds: a twentieth of those that there are.
double momentum_of(const RoundOptions& rounds, std::int64_t steps) {
  if (rounds.outer_momentum > 0) return rounds.outer_momentum;
  constexpr double kShare = 20;
  const auto count = static_cast<double>(std::max<std::int64_t>(round_count(rounds, steps), 1));
  return std::clamp(1 - kShare / count, 0.7, 0.9);
}

// [island] the ranks of each machine.
std::vector<std::vector<Rank>> islands_of(const Plan& plan) {
  std::vector<std::vector<Rank>> islands;
  std::map<std::string, std::size_t> numbers;
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    const auto [at, is_new] = numbers.emplace(plan.ranks[rank.index()].machine, islands.size());
    if (is_new) islands.emplace_back();
    islands[at->second].push_back(rank);
  }
  return islands;
}

// The plans of a search that two islands or more can train by. The fastest one with an all-reduce
// in each step is not always the fastest one with rounds: there a slow machine updates its
// parameters without waiting for the others.
std::vector<Plan> plans_of_islands(const Planning& found) {
  std::vector<Plan> plans;
  const auto add = [&](const Plan& plan) {
    if (islands_of(plan).size() >= 2) plans.push_back(plan);
  };
  add(found.plan);
  for (const Plan& plan : found.alternatives) add(plan);
  // Asked-for rounds need not be faster than one device.
  if (plans.empty() && found.data_parallel) add(*found.data_parallel);
  return plans;
}

struct RoundsFound {
  Planning planning;
  double start_s = 0;  // of the steps before the first round
};

// The time of an all-reduce of exact values over the machines of the plan, whose slowest link
// carries most of them twice.
double exact_allreduce_s(const Plan& plan, const Cluster& cluster, double floats) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const RankPlan& from : plan.ranks) {
    for (const RankPlan& to : plan.ranks) {
      if (from.machine == to.machine) continue;
      slowest = std::min(slowest, cluster.link(from.machine, to.machine).bandwidth_bytes_per_s);
    }
  }
  const auto machines = static_cast<double>(plan.rounds->islands.size());
  return 2 * (machines - 1) / machines * floats * sizeof(float) / slowest;
}

// The best single device, to compute the start alone, even where pins require more machines.
std::optional<Plan> best_alone(const ModelSpec& model,
                               const Cluster& cluster,
                               const Profile& profile,
                               const PlanOptions& options,
                               const std::optional<Plan>& single) {
  if (options.pins.always.empty()) return single;
  PlanOptions alone = options;
  alone.rounds.reset();
  alone.stages = 1;
  alone.replicas = false;
  alone.pins.always.clear();
  auto plan = make_plan(model, cluster, profile, alone);
  if (!plan.ok()) return std::nullopt;
  return *std::move(plan);
}

class RoundSearch {
 public:
  // `single`: the best single device; nullopt: none holds the model.
  RoundSearch(const ModelSpec& model,
              const Cluster& cluster,
              const Profile& profile,
              const PlanOptions& options,
              const std::optional<Plan>& single)
      : model_(model), cluster_(cluster), profile_(profile), options_(options), single_(single) {}

  // The best plan with rounds of that many steps: without overlap, and with each overlap, for which
  // links count less. nullopt if fewer than two machines hold the model.
  Result<std::optional<RoundsFound>> with_steps(std::int64_t steps) const {
    const std::vector<std::int64_t> overlaps = overlaps_of(*options_.rounds, steps);
    std::optional<RoundsFound> best;
    if (overlaps.front() == 0) {
      MOTLEY_ASSIGN(best, with_overlaps(steps, static_cast<double>(steps), {0}));
    }
    if (overlaps.back() > 0) {
      MOTLEY_ASSIGN(auto found,
                    with_overlaps(steps, kHidden * static_cast<double>(steps), overlaps));
      if (found && (!best || time_s(*found) < time_s(*best))) best = std::move(found);
    }
    return best;
  }

  // The time of the training to the loss of synchronous training.
  [[nodiscard]] double time_s(const RoundsFound& found) const {
    const Plan& plan = found.planning.plan;
    const RoundsPlan& rounds = *plan.rounds;
    const auto rest = static_cast<double>(options_.rounds->train_steps - rounds.start_steps);
    return found.start_s + rest * plan.predicted_step_s *
                               token_factor(rounds.steps,
                                            round_count(*options_.rounds, rounds.steps),
                                            rounds.overlap_steps);
  }

  // The best length of a round, without looking at synchronous plans.
  Result<std::optional<RoundsFound>> best() const {
    const RoundOptions& rounds = *options_.rounds;
    std::optional<RoundsFound> best;
    for (const std::int64_t steps : kRoundSteps) {
      if (steps <= rounds.overlap_steps.value_or(0)) continue;
      if (round_count(rounds, steps) < kLeastRounds) break;
      if (!options_.may_continue(best ? best->planning.plan.predicted_step_s : 0)) break;
      MOTLEY_ASSIGN(auto found, with_steps(steps));
      if (found && (!best || time_s(*found) < time_s(*best))) best = std::move(found);
    }
    return best;
  }

 private:
  // The best of the overlaps, with devices and shares that are among the best on links and with
  // codecs faster by that factor.
  Result<std::optional<RoundsFound>> with_overlaps(
      std::int64_t steps, double factor, const std::vector<std::int64_t>& overlaps) const {
    const RoundOptions& rounds = *options_.rounds;
    PlanOptions options = options_;
    options.rounds.reset();
    options.stages = 1;
    options.codecs = {"none"};
    options.gradient_codecs = {rounds.codec};
    options.coarser.clear();
    options.process_state.moments_per_parameter += kRoundFloatsPerParameter;
    if (overlaps.back() > 0)
      options.process_state.moments_per_parameter += kOverlapFloatsPerParameter;
    auto found =
        plan_in_full(model_, sped_up(cluster_, factor), sped_up(profile_, factor), options);
    if (!found.ok()) {
      if (found.error().code == ErrorCode::kInfeasible) return std::optional<RoundsFound>();
      return found.error();
    }
    std::vector<RoundsFound> all;
    for (Plan& plan : plans_of_islands(*found)) {
      for (RankPlan& rank : plan.ranks) rank.link_mbps = true_mbps(rank.link_mbps, factor);
      MOTLEY_ASSIGN(all.emplace_back(), with_best_overlap(std::move(plan), steps, overlaps));
    }
    if (all.empty()) return std::optional<RoundsFound>();
    std::ranges::stable_sort(all, {}, [&](const RoundsFound& each) { return time_s(each); });
    RoundsFound& best = all.front();
    best.planning.is_complete = found->is_complete;
    for (std::size_t i = 1; i < all.size(); ++i) {
      best.planning.alternatives.push_back(std::move(all[i].planning.plan));
    }
    return std::optional(std::move(best));
  }

  // The plan with rounds of that many steps and one of the overlaps.
  Result<RoundsFound> with_best_overlap(Plan plan,
                                        std::int64_t steps,
                                        const std::vector<std::int64_t>& overlaps) const {
    const RoundOptions& rounds = *options_.rounds;
    PlanOptions synchronously = options_;
    synchronously.rounds.reset();
    MOTLEY_ASSIGN(const SimulatedPlan synchronous,
                  simulate_plan(plan, model_, cluster_, profile_, synchronously));
    plan.rounds = RoundsPlan{.islands = islands_of(plan),
                             .steps = steps,
                             .start_steps = start_steps_of(rounds, steps),
                             .codec = rounds.codec,
                             .outer_lr = rounds.outer_lr,
                             .outer_momentum = momentum_of(rounds, steps)};
    RoundsFound made{{.plan = std::move(plan)}};
    choose_start(synchronous.step.step_s, made);
    std::optional<RoundsFound> best;
    for (const std::int64_t overlap : overlaps) {
      Plan& overlapping = made.planning.plan;
      overlapping.rounds->overlap_steps = overlap;
      MOTLEY_ASSIGN(const SimulatedPlan simulated,
                    simulate_plan(overlapping, model_, cluster_, profile_, options_));
      overlapping.predicted_step_s = simulated.step.step_s;
      if (!best || time_s(made) < time_s(*best)) best = made;
    }
    return *std::move(best);
  }

  // All islands synchronously, or the best single device alone, whose state is then sent to all.
  void choose_start(double synchronous_step_s, RoundsFound& found) const {
    Plan& plan = found.planning.plan;
    const auto steps = static_cast<double>(plan.rounds->start_steps);
    found.start_s = steps * synchronous_step_s;
    if (!single_ || steps == 0) return;
    const std::string& machine = single_->ranks.front().machine;
    const auto island =
        std::ranges::find_if(plan.rounds->islands, [&](const std::vector<Rank>& ranks) {
          return plan.ranks[ranks.front().index()].machine == machine;
        });
    if (island == plan.rounds->islands.end()) return;
    const double floats = static_cast<double>(model_.parameter_count()) *
                          (1 + options_.process_state.moments_per_parameter);
    const double alone_s =
        steps * single_->predicted_step_s + exact_allreduce_s(plan, cluster_, floats);
    if (alone_s >= found.start_s) return;
    found.start_s = alone_s;
    plan.rounds->start_island = static_cast<int>(island - plan.rounds->islands.begin());
  }

  const ModelSpec& model_;
  const Cluster& cluster_;
  const Profile& profile_;
  const PlanOptions& options_;
  const std::optional<Plan>& single_;
};

}  // namespace

Result<Planning> with_rounds(const ModelSpec& model,
                             const Cluster& cluster,
                             const Profile& profile,
                             const PlanOptions& options,
                             Planning synchronous) {
  const RoundOptions& asked = *options.rounds;
  const auto single = best_alone(model, cluster, profile, options, synchronous.single);
  const RoundSearch search(model, cluster, profile, options, single);
  MOTLEY_ASSIGN(auto found, asked.steps > 0 ? search.with_steps(asked.steps) : search.best());
  const double step_s = synchronous.plan.predicted_step_s;
  if (!found) {
    if (asked.steps == 0 || !asked.is_required) return synchronous;
    return Error{ErrorCode::kInfeasible, "rounds of local training are not possible here",
                 "they need two machines or more that hold the whole model and its optimizer",
                 "set parallel.rounds to off or auto"};
  }
  const double synchronous_s = step_s * static_cast<double>(asked.train_steps);
  const bool pays = search.time_s(*found) <= (1 - kLeastRoundGain) * synchronous_s;
  if (asked.steps == 0 && !pays) return synchronous;
  Planning planning = std::move(found->planning);
  const RoundsPlan& rounds = *planning.plan.rounds;
  note_rounds({cluster, synchronous.single, step_s,
               expected_loss_increase(rounds.steps, round_count(asked, rounds.steps),
                                      rounds.overlap_steps)},
              planning.plan);
  planning.single = std::move(synchronous.single);
  planning.data_parallel = std::move(synchronous.data_parallel);
  return planning;
}

}  // namespace motley
