#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "partitioner/cost/at.h"
#include "partitioner/period_search/period_probe.h"

namespace motley {
namespace {

// States times classes: some ten megabytes and a few hundredths of a second for a probe.
constexpr std::size_t kEntriesMax = 6'000'000;

using Layer = std::uint16_t;
using Classes = std::uint32_t;  // a bit for each; with more classes there are too many sets
constexpr Layer kUnreachable = std::numeric_limits<Layer>::max();

class AllSetsProbe : public PeriodProbe {
 public:
  AllSetsProbe(const std::vector<std::vector<int>>& classes,
               const ThroughputBound& throughput_bound,
               int layer_count)
      : classes_(classes), throughput_bound_(throughput_bound), layers_(layer_count) {
    std::size_t states = 1;
    for (const std::vector<int>& members : classes) {
      stride_.push_back(states);
      states *= members.size() + 1;
      slots_ += static_cast<int>(members.size());
    }
    reached_.resize(states * classes.size());
    furthest_.resize(states);
    depth_.resize(states);
    throughput_of_.resize(states);
    present_.resize(states);
    capacity_of_.resize(states);
    for (std::size_t state = 0; state < states; ++state) {
      for (std::size_t c = 0; c < classes.size(); ++c) {
        depth_[state] += count(state, c);
        throughput_of_[state] += count(state, c) * throughput_bound.of(classes[c].front());
      }
    }
  }

  [[nodiscard]] bool is_complete() const override { return true; }

  [[nodiscard]] std::int64_t tails() const override { return tails_; }

  std::vector<Pipeline> pipelines(const StageReach& reach) override {
    tails_ += static_cast<std::int64_t>(depth_.size());
    tabulate(reach);
    weigh(reach);
    std::vector<std::size_t> best(at(slots_) + 1, 0);  // [stages] state, 0 = none
    std::vector<double> best_throughput(at(slots_) + 1, 0);
    std::vector<std::size_t> counts(classes_.size(), 0);  // [class] in the state
    Classes present = 0;
    for (std::size_t state = 1; state < depth_.size(); ++state) {
      std::size_t c = 0;
      for (; ++counts[c] > classes_[c].size(); ++c) {
        counts[c] = 0;
        present &= ~(Classes{1} << c);
      }
      present |= Classes{1} << c;
      capacity_of_[state] = capacity_of_[state - stride_[c]] + reach.capacity(static_cast<int>(c));
      if (!fill(state, present)) continue;
      const double throughput = throughput_of_[state];
      const auto stages = static_cast<std::size_t>(depth_[state]);
      if (best[stages] != 0 && throughput <= best_throughput[stages]) continue;
      best[stages] = state;
      best_throughput[stages] = throughput;
    }
    std::vector<Pipeline> found;
    for (const std::size_t state : best) {
      if (state != 0) found.push_back(rebuild(state));
    }
    return found;
  }

 private:
  int count(std::size_t state, std::size_t c) const {
    return static_cast<int>(state / stride_[c] % (classes_[c].size() + 1));
  }

  // The reaches and links at this period as flat tables: they are read millions of times.
  void tabulate(const StageReach& reach) {
    first_.resize(classes_.size() * at(slots_ + 1) * at(layers_ + 1));
    for (int c = 0; c < reach.class_count(); ++c) {
      for (int depth = 1; depth <= slots_; ++depth) {
        first_[first_index(at(c), depth, 0)] = 0;
        for (int last = 1; last <= layers_; ++last) {
          first_[first_index(at(c), depth, last)] = static_cast<Layer>(reach.first(c, depth, last));
        }
      }
    }
    carries_.assign(classes_.size() * classes_.size(), 0);
    for (int a = 0; a < reach.class_count(); ++a) {
      for (int b = 0; b < reach.class_count(); ++b) {
        carries_[at(a) * classes_.size() + at(b)] = reach.carries(a, b) ? 1 : 0;
      }
    }
  }

  std::size_t first_index(std::size_t c, int depth, int last) const {
    return (at(depth) * classes_.size() + c) * at(layers_ + 1) + at(last);
  }

  // The first layer that the state's slots reach behind a stage of class `front`.
  Layer behind(std::size_t state, std::size_t front) const {
    if (state == 0) return static_cast<Layer>(layers_);
    // The class that reaches furthest usually is one that the link can carry.
    const std::uint8_t* carries = &carries_[front * classes_.size()];
    const Furthest& furthest = furthest_[state];
    if (furthest.first == kUnreachable || carries[furthest.slot_class] != 0) return furthest.first;
    const Layer* reached = &reached_[state * classes_.size()];
    Layer best = kUnreachable;
    for (Classes rest = present_[state]; rest != 0; rest &= rest - 1) {
      const auto d = static_cast<std::size_t>(std::countr_zero(rest));
      if (carries[d] != 0) best = std::min(best, reached[d]);
    }
    return best;
  }

  // A state is pruned if its layers leave more weight than all other slots can hold.
  void weigh(const StageReach& reach) {
    constexpr double kWeightRounding = 1e-9;
    double all = 0;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      all += reach.capacity(static_cast<int>(c)) * static_cast<double>(classes_[c].size());
    }
    most_ = all + kWeightRounding * (all + throughput_bound_.weight());
  }

  // States are visited in numerical order, so smaller ones come first. True when the whole model is
  // covered.
  bool fill(std::size_t state, Classes present) {
    Furthest furthest{kUnreachable, 0};
    const double left = most_ - capacity_of_[state];
    Layer* reached = &reached_[state * classes_.size()];
    const Layer* first = &first_[at(depth_[state]) * classes_.size() * at(layers_ + 1)];
    for (Classes rest = present; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::size_t>(std::countr_zero(rest));
      const Layer last = behind(state - stride_[c], c);
      reached[c] = kUnreachable;
      if (last == kUnreachable) continue;
      // A slot that cannot hold even one layer here may remain empty.
      const Layer from = first[c * at(layers_ + 1) + last];
      if (throughput_bound_.weight_before(from) > left) continue;
      reached[c] = from;
      if (from < furthest.first) furthest = {from, static_cast<std::uint16_t>(c)};
    }
    present_[state] = present;
    furthest_[state] = furthest;
    return furthest.first == 0;
  }

  Pipeline rebuild(std::size_t state) const {
    Pipeline pipeline;
    std::vector<std::size_t> taken(classes_.size(), 0);
    Layer wanted = 0;
    std::size_t front = kAny;
    while (state != 0) {
      const std::size_t c = front_class(state, wanted, front);
      const std::size_t rest = state - stride_[c];
      const Layer last = behind(rest, c);
      if (last > wanted) {  // not an empty stage
        pipeline.slots.push_back(classes_[c][taken[c]++]);
        pipeline.first_layers.push_back(wanted);
      }
      wanted = last;
      state = rest;
      front = c;
    }
    return pipeline;
  }

  static constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

  // The class in front of the state if its layers begin at `wanted`; `before` is the class of the
  // stage before it.
  std::size_t front_class(std::size_t state, Layer wanted, std::size_t before) const {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      if ((present_[state] >> c & 1U) == 0) continue;
      if (reached_[state * classes_.size() + c] != wanted) continue;
      if (before == kAny || carries_[before * classes_.size() + c] != 0) return c;
    }
    MOTLEY_CHECK(false, "state {} does not reach layer {}", state, wanted);
    return 0;
  }

  const std::vector<std::vector<int>>& classes_;
  const ThroughputBound& throughput_bound_;
  int layers_;
  int slots_ = 0;
  std::int64_t tails_ = 0;
  double most_ = 0;  // capacity of all slots together at this period

  struct Furthest {
    Layer first = kUnreachable;
    std::uint16_t slot_class = 0;
  };

  std::vector<std::size_t> stride_;    // [class] weight of its count in a state's index
  std::vector<int> depth_;             // [state] number of its slots
  std::vector<double> throughput_of_;  // [state] total of its slots
  std::vector<Classes> present_;       // [state] classes in it
  std::vector<double> capacity_of_;    // [state] total of its slots at this period
  std::vector<Furthest> furthest_;     // [state] the furthest of reached_
  std::vector<Layer> reached_;         // [state x class in front] first layer
  std::vector<Layer> first_;           // [depth x class x last]
  std::vector<std::uint8_t> carries_;  // [front class x class behind]
};

}  // namespace

bool can_probe_all_sets(const std::vector<std::vector<int>>& classes) {
  std::size_t entries = classes.size();
  for (const std::vector<int>& members : classes) {
    entries *= members.size() + 1;
    if (entries > kEntriesMax) return false;
  }
  return true;
}

std::unique_ptr<PeriodProbe> all_sets_probe(const std::vector<std::vector<int>>& classes,
                                            const ThroughputBound& throughput_bound,
                                            int layer_count) {
  MOTLEY_CHECK(can_probe_all_sets(classes) && layer_count < kUnreachable, "{} classes, {} layers",
               classes.size(), layer_count);
  return std::make_unique<AllSetsProbe>(classes, throughput_bound, layer_count);
}

}  // namespace motley
