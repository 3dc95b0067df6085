// The quality of the planner's beam search: simulated annealing over the orders of all machines,
// for any time, compared with the period that the planner found in seconds.
//
//   planner_anneal SECONDS [CASE]   CASE: 64x200 (default) or another of planner_scale
//
// An order is rated by how far to the front of the model its machines reach when they are filled
// from the end, at a period slightly shorter than the best known. Once they reach all of it, the
// period is lowered. The cuts are thus always optimal for the order.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/philox.h"
#include "bench/scale_cases.h"
#include "partitioner/cost/stage_reach.h"
#include "partitioner/cost/throughput_bound.h"
#include "partitioner/period_search/slot_classes.h"

namespace motley {
namespace {

constexpr double kLower = 1 - 1e-4;  // the next period to try, relative to the best

class Annealing {
 public:
  Annealing(const CostModel& cost, const StepShape& shape, double period_s)
      : table_(cost, shape),
        estimate_(table_, space_),
        throughput_bound_(table_, space_),
        classes_(slot_classes(cost, space_)),
        reach_(estimate_, throughput_bound_, classes_),
        best_s_(period_s) {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      order_.insert(order_.end(), classes_[c].size(), static_cast<int>(c));
    }
    reach_.set_period(best_s_ * kLower);
    left_ = left_over(order_);
  }

  // Returns the shortest period found.
  double run(double seconds) {
    const double start_s = now_s();
    // Temperatures from about a large layer's weight down to a hundredth of a small one's,
    // repeatedly.
    const double hot = throughput_bound_.weight() / 50;
    constexpr std::uint64_t kTrialsPerRound = 20'000'000;
    while (now_s() - start_s < seconds) {
      for (std::uint64_t trial = 0; trial < kTrialsPerRound; ++trial) {
        if (trial % 4096 == 0 && now_s() - start_s >= seconds) break;
        const double done = static_cast<double>(trial) / kTrialsPerRound;
        step(hot * std::pow(1e-4, done));
      }
    }
    return best_s_;
  }

  [[nodiscard]] std::uint64_t trials() const { return trials_; }

 private:
  // The weight of the layers that the order does not reach.
  double left_over(const std::vector<int>& order) const {
    int last = table_.layer_count();
    int depth = 1;
    for (const int c : order) {
      const int first = reach_.first(c, depth, last);
      if (first < last) ++depth;
      last = first;
      if (last == 0) return 0;
    }
    return throughput_bound_.weight_before(last);
  }

  void step(double temperature) {
    const PhiloxBlock bits = philox4x32(1, trials_++, 0);
    std::vector<int> trial = order_;
    const std::size_t a = bits[0] % trial.size();
    const std::size_t b = bits[1] % trial.size();
    if (bits[2] % 2 == 0) {
      std::swap(trial[a], trial[b]);
    } else {
      const int moved = trial[a];
      trial.erase(trial.begin() + static_cast<std::ptrdiff_t>(a));
      trial.insert(trial.begin() + static_cast<std::ptrdiff_t>(b), moved);
    }
    const double left = left_over(trial);
    const double chance = std::exp((left_ - left) / temperature);
    if (left > left_ && static_cast<double>(bits[3]) * 0x1.0p-32 >= chance) return;
    order_ = std::move(trial);
    left_ = left;
    while (left_ == 0) {
      best_s_ *= kLower;
      reach_.set_period(best_s_ * kLower);
      left_ = left_over(order_);
    }
  }

  SearchSpace space_;
  StageTable table_;
  StepEstimate estimate_;
  ThroughputBound throughput_bound_;
  std::vector<std::vector<int>> classes_;
  StageReach reach_;
  double best_s_;
  std::vector<int> order_;  // slot classes, beginning with the last stage
  double left_ = 0;
  std::uint64_t trials_ = 0;
};

int run(const ScaleCase& c, double seconds) {
  const ScaleProblem problem = make_problem(c);
  const auto planning =
      plan_in_full(problem.model, problem.cluster, problem.profile, problem.options);
  const auto cost = CostModel::make(problem.model, problem.cluster, problem.profile, 1,
                                    {.moments_per_parameter = 2});
  if (!planning.ok() || !cost.ok()) return 1;
  const double planned_s = planning->bounds.least_period_s;
  Annealing annealing(*cost, {1, c.micro_batches, false}, planned_s * 1.2);
  const double annealed_s = annealing.run(seconds);
  fmt::print(
      "{}: the planner's least period {:.4f} s, annealing for {:.0f} s ({} M orders) {:.4f} s: "
      "the planner is {:+.2f} % off it; no period is below {:.4f} s\n",
      c.name, planned_s, seconds, annealing.trials() / 1'000'000, annealed_s,
      100 * (planned_s / annealed_s - 1), planning->bounds.period_bound_s);
  return 0;
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  const std::string name = argc > 2 ? argv[2] : "64x200";
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  for (const motley::ScaleCase& c : motley::kScaleCases) {
    if (name == c.name && seconds > 0) return motley::run(c, seconds);
  }
  std::fprintf(stderr, "usage: planner_anneal SECONDS [CASE]\n");
  return 2;
}
