#include <algorithm>
#include <cstdint>
#include <utility>

#include "partitioner/cost/at.h"
#include "partitioner/period_search/period_probe.h"

namespace motley {
namespace {

// Extensions in a probe; they determine the width of the beam.
constexpr std::size_t kExtensions = 1'500'000;
constexpr std::size_t kWidthMin = 8;
constexpr std::size_t kWidthMax = 256;
constexpr int kNoTail = -1;

// A tail of the pipeline. Its set of slots is identified by a sum of keys, so that two tails with
// the same set are detected in constant time.
struct BeamTail {
  int first_layer = 0;
  int front_class = 0;
  int depth = 0;
  int next = kNoTail;     // the tail behind
  double waste = 0;       // unused capacity of its slots
  std::uint64_t set = 0;  // sum of the keys of its slots' classes
};

// Hashes class numbers to 64 bits (the finaliser of splitmix64).
std::uint64_t key_of(int slot_class) {
  std::uint64_t x = (static_cast<std::uint64_t>(slot_class) + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

class BeamProbe : public PeriodProbe {
 public:
  BeamProbe(const std::vector<std::vector<int>>& classes,
            const ThroughputBound& throughput_bound,
            int layer_count)
      : classes_(classes),
        throughput_bound_(throughput_bound),
        layers_(layer_count),
        width_(std::clamp(kExtensions / (at(layer_count) * classes.size()), kWidthMin, kWidthMax)),
        used_(classes.size(), 0) {}

  [[nodiscard]] bool is_complete() const override { return false; }

  [[nodiscard]] std::int64_t tails() const override { return tails_seen_; }

  std::vector<Pipeline> pipelines(const StageReach& reach) override {
    const double slack = reach.slack();
    if (slack < 0) return {};
    tails_.clear();
    at_layer_.assign(at(layers_) + 1, {});
    tails_.push_back({layers_, kNoTail, 0, kNoTail, 0, 0});
    at_layer_[at(layers_)].push_back(0);
    for (int last = layers_; last >= 1; --last) {
      for (const int tail : best_at(last)) extend(tail, slack, reach);
    }
    return whole_pipelines();
  }

 private:
  // The tails at a boundary with the least waste, without those that differ only in the order of
  // their slots.
  std::vector<int> best_at(int layer) {
    std::vector<int>& list = at_layer_[at(layer)];
    const auto wastes_more = [&](int a, int b) {
      const BeamTail& x = tails_[at(a)];
      const BeamTail& y = tails_[at(b)];
      return x.waste != y.waste ? x.waste > y.waste : a > b;
    };
    // Only the best part of a long list is sorted.
    std::make_heap(list.begin(), list.end(), wastes_more);
    std::vector<int> best;
    while (best.size() < width_ && !list.empty()) {
      std::pop_heap(list.begin(), list.end(), wastes_more);
      const int tail = list.back();
      list.pop_back();
      const auto same = [&](int other) {
        return tails_[at(other)].set == tails_[at(tail)].set &&
               tails_[at(other)].front_class == tails_[at(tail)].front_class;
      };
      if (std::none_of(best.begin(), best.end(), same)) best.push_back(tail);
    }
    list.clear();
    return best;
  }

  void extend(int index, double slack, const StageReach& reach) {
    const BeamTail tail = tails_[at(index)];
    count_used(index, +1);
    tails_seen_ += reach.class_count();
    for (int c = 0; c < reach.class_count(); ++c) {
      if (used_[at(c)] == static_cast<int>(classes_[at(c)].size())) continue;
      if (tail.front_class != kNoTail && !reach.carries(c, tail.front_class)) continue;
      const int first = reach.first(c, tail.depth + 1, tail.first_layer);
      if (first == tail.first_layer) continue;
      const double held = throughput_bound_.weight_before(tail.first_layer) -
                          throughput_bound_.weight_before(first);
      const double waste = tail.waste + reach.capacity(c) - held;
      // Unused capacity at the front of the model is not waste.
      if (first > 0 && waste > slack) continue;
      at_layer_[at(first)].push_back(static_cast<int>(tails_.size()));
      tails_.push_back({first, c, tail.depth + 1, index, waste, tail.set + key_of(c)});
    }
    count_used(index, -1);
  }

  void count_used(int tail, int sign) {
    for (; tails_[at(tail)].next != kNoTail; tail = tails_[at(tail)].next) {
      used_[at(tails_[at(tail)].front_class)] += sign;
    }
  }

  std::vector<Pipeline> whole_pipelines() const {
    std::vector<int> by_depth;
    for (const int whole : at_layer_[0]) {
      const int depth = tails_[at(whole)].depth;
      if (static_cast<int>(by_depth.size()) <= depth) by_depth.resize(at(depth) + 1, kNoTail);
      int& best = by_depth[at(depth)];
      if (best == kNoTail || tails_[at(whole)].waste < tails_[at(best)].waste) best = whole;
    }
    std::vector<Pipeline> pipelines;
    for (const int whole : by_depth) {
      if (whole != kNoTail) pipelines.push_back(rebuild(whole));
    }
    return pipelines;
  }

  Pipeline rebuild(int tail) const {
    Pipeline pipeline;
    std::vector<std::size_t> taken(classes_.size(), 0);
    for (; tails_[at(tail)].next != kNoTail; tail = tails_[at(tail)].next) {
      const std::size_t c = at(tails_[at(tail)].front_class);
      pipeline.slots.push_back(classes_[c][taken[c]++]);
      pipeline.first_layers.push_back(tails_[at(tail)].first_layer);
    }
    return pipeline;
  }

  const std::vector<std::vector<int>>& classes_;
  const ThroughputBound& throughput_bound_;
  int layers_;
  std::size_t width_;
  std::int64_t tails_seen_ = 0;
  std::vector<int> used_;  // [class] number used by the tail that is being extended
  std::vector<BeamTail> tails_;
  std::vector<std::vector<int>> at_layer_;  // [first layer] tails
};

}  // namespace

std::unique_ptr<PeriodProbe> beam_probe(const std::vector<std::vector<int>>& classes,
                                        const ThroughputBound& throughput_bound,
                                        int layer_count) {
  return std::make_unique<BeamProbe>(classes, throughput_bound, layer_count);
}

}  // namespace motley
