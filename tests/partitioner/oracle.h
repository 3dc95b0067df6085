// The oracle of the searches: enumerates every plan of a problem and rates it directly from the
// sketch. It shares no code with the cost model, the estimate or the searches, and is simple and
// slow; docs/algorithms.md has the same formulae.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "partitioner/cost/stage_table.h"
#include "tests/partitioner/planning_fixtures.h"

namespace motley {

struct OracleStage {
  std::vector<int> machines;
  int first = 0;
  int last = 0;
  bool recompute = false;
  bool half = false;  // the codec of the boundary after the stage
};

class Oracle {
 public:
  Oracle(const Problem& problem, const StepShape& shape) : p_(problem), shape_(shape) {}

  struct Best {
    double step_s = std::numeric_limits<double>::infinity();
    double single_slot_period_s = std::numeric_limits<double>::infinity();
  };

  // The best plan with this number of stages (0: any).
  Best best(int stages) {
    best_ = {};
    stages_ = stages;
    extend(0);
    return best_;
  }

  // The memory of a process that holds the stage's layers with `held` micro-batches in flight.
  double memory_bytes(const OracleStage& stage, int held) const {
    double bytes = static_cast<double>(parameters(stage)) * 4 * (1 + 1 + 2);
    if (is_tied() && (stage.first == 0 || stage.last == layer_count())) {
      // With one use of the tied parameter: sent and received frames of its all-reduce. With both
      // uses: the value and the gradient of the second.
      bytes += 2 * static_cast<double>(p_.layers[0].parameters) * 4;
    }
    double saved = 0;
    for (int l = stage.first; l < stage.last; ++l) {
      saved += static_cast<double>(p_.layers[at(l)].saved_bytes) * shape_.micro_batch;
    }
    bytes += stage.recompute ? saved : held * saved;
    double boundary_bytes = stage.last < layer_count() ? held_bytes(stage.last - 1) : 0;
    if (stage.first > 0) boundary_bytes += held_bytes(stage.first - 1);
    bytes += (held + 2) * boundary_bytes;
    return bytes + std::floor(bytes * 4 / 100);  // the allocator's own
  }

 private:
  int layer_count() const { return static_cast<int>(p_.layers.size()); }

  int machine_count() const { return static_cast<int>(p_.machines.size()); }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static std::string name(int machine) { return "m" + std::to_string(machine); }

  // Adds all possible next stages from layer `first` on, on any set of unused machines.
  void extend(int first) {
    if (first == layer_count()) return rate();
    for (unsigned group = 1; group < 1U << machine_count(); ++group) {
      std::vector<int> machines;
      for (int m = 0; m < machine_count(); ++m) {
        if ((group >> m & 1U) != 0) machines.push_back(m);
      }
      if (machines.size() > 1 && !p_.options.replicas) continue;
      if (std::any_of(machines.begin(), machines.end(), [&](int m) { return used_[m]; })) continue;
      for (int m : machines) used_[m] = true;
      for (int last = first + 1; last <= layer_count(); ++last) {
        for (const bool recompute : {false, true}) {
          if (recompute ? p_.options.recompute == "none" : p_.options.recompute == "all") continue;
          for (const bool half : {false, true}) {
            if (half && (p_.options.codecs.size() < 2 || last == layer_count())) continue;
            pipeline_.push_back({machines, first, last, recompute, half});
            extend(last);
            pipeline_.pop_back();
          }
        }
      }
      for (int m : machines) used_[m] = false;
    }
  }

  double pass_s(int machine, const OracleStage& stage) const {
    double sum_s = 0;
    for (int l = stage.first; l < stage.last; ++l) {
      const double work_s = p_.layers[at(l)].work_s / p_.machines[at(machine)].speed_of(at(l));
      sum_s += shape_.micro_batch * (stage.recompute ? work_s * 4 / 3 : work_s);
    }
    return sum_s;
  }

  // Two thirds of a layer's work; with a split backward the second part is half of that.
  double last_backward_s(int machine, const OracleStage& stage) const {
    const OracleStage once{.first = stage.first, .last = stage.last};
    return pass_s(machine, once) * (shape_.splits_backward() ? 1 : 2) / 3;
  }

  // Assigns each micro-batch to the machine that would finish it first.
  std::vector<int> split_batch(const OracleStage& stage) const {
    std::vector<int> batch_split(stage.machines.size(), 0);
    for (int micro = 0; micro < shape_.micro_batches; ++micro) {
      std::size_t next = 0;
      const auto done_s = [&](std::size_t i) {
        return (batch_split[i] + 1) * pass_s(stage.machines[i], stage);
      };
      for (std::size_t i = 1; i < batch_split.size(); ++i) {
        if (done_s(i) < done_s(next) * (1 - 1e-12)) next = i;
      }
      ++batch_split[next];
    }
    return batch_split;
  }

  // The largest number of `window` consecutive micro-batches that are on machine k of a stage, if
  // each is assigned to the machine furthest behind its share.
  int held(const std::vector<int>& batch_split, std::size_t k, int window) const {
    const int m = shape_.micro_batches;
    std::vector<int> given(batch_split.size(), 0);
    std::vector<int> is_ours;
    for (int micro = 0; micro < m; ++micro) {
      std::size_t next = 0;
      const auto behind = [&](std::size_t i) {
        return batch_split[i] * (micro + 1) - given[i] * m;
      };
      for (std::size_t i = 1; i < batch_split.size(); ++i)
        next = behind(i) > behind(next) ? i : next;
      ++given[next];
      is_ours.push_back(next == k ? 1 : 0);
    }
    int most = 0;
    for (auto from = is_ours.begin(); is_ours.end() - from >= window; ++from) {
      most = std::max(most, static_cast<int>(std::count(from, from + window, 1)));
    }
    return most;
  }

  std::int64_t parameters(const OracleStage& stage) const {
    std::int64_t count = 0;
    for (int l = stage.first; l < stage.last; ++l) count += p_.layers[at(l)].parameters;
    const bool copy = is_tied() && stage.last == layer_count() && stage.first > 0;
    return count + (copy ? p_.layers[0].parameters : 0);
  }

  bool is_tied() const { return p_.tied && layer_count() > 1; }

  double boundary_floats(int layer) const {
    return static_cast<double>(p_.layers[at(layer)].output_floats * shape_.micro_batch);
  }

  double held_bytes(int layer) const { return 4 * boundary_floats(layer) + exact_bytes(layer); }

  double exact_bytes(int layer) const {
    return static_cast<double>(p_.layers[at(layer)].exact_bytes * shape_.micro_batch);
  }

  bool fits(const OracleStage& stage, int machine, int held) const {
    const auto share_of = p_.options.pins.memory_share.find(name(machine));
    const double limit = static_cast<double>(p_.machines[at(machine)].memory_bytes) *
                         (share_of == p_.options.pins.memory_share.end() ? 1 : share_of->second);
    return memory_bytes(stage, held) <= std::floor(limit);
  }

  bool obeys_pins() const {
    const Pins& pins = p_.options.pins;
    const auto uses = [&](const std::string& machine) {
      for (const OracleStage& stage : pipeline_) {
        for (const int m : stage.machines) {
          if (name(m) == machine) return true;
        }
      }
      return false;
    };
    for (const std::string& machine : pins.never) {
      if (uses(machine)) return false;
    }
    for (const std::string& machine : pins.always) {
      if (!uses(machine)) return false;
    }
    for (const auto& pin : pins.layers) {
      const int layer = std::stoi(pin.layer);
      for (const OracleStage& stage : pipeline_) {
        if (layer < stage.first || layer >= stage.last) continue;
        const auto is_pinned = [&](int m) { return name(m) == pin.machine; };
        if (std::none_of(stage.machines.begin(), stage.machines.end(), is_pinned)) return false;
      }
    }
    return true;
  }

  LinkSpeed link(int from, int to) const {
    for (const LinkOverride& link : p_.links) {
      if (link.from == name(from) && link.to == name(to)) return link.speed;
    }
    return p_.link;
  }

  // The slowest transfer between two sets of machines.
  double slowest_s(const std::vector<int>& from,
                   const std::vector<int>& to,
                   double bytes,
                   double latencies = 1) const {
    double slowest = 0;
    for (const int a : from) {
      for (const int b : to) {
        if (a == b) continue;
        for (const LinkSpeed& speed : {link(a, b), link(b, a)}) {
          slowest =
              std::max(slowest, bytes / speed.bandwidth_bytes_per_s + latencies * speed.latency_s);
        }
      }
    }
    return slowest;
  }

  bool is_half_duplex(int a, int b) const {
    return !p_.machines[at(a)].medium.empty() || !p_.machines[at(b)].medium.empty();
  }

  // The slowest transfer in either direction between two sets of machines, by the bytes of each.
  double slowest_hop_s(const std::vector<int>& from,
                       const std::vector<int>& to,
                       double bytes,
                       double back_bytes) const {
    double slowest = 0;
    for (const int a : from) {
      for (const int b : to) {
        if (a == b) continue;
        const LinkSpeed there = link(a, b);
        const LinkSpeed back = link(b, a);
        slowest = std::max({slowest, bytes / there.bandwidth_bytes_per_s + there.latency_s,
                            back_bytes / back.bandwidth_bytes_per_s + back.latency_s});
      }
    }
    return slowest;
  }

  // The busy time of the busiest of these links for these bytes in each direction.
  double load_s(const std::vector<int>& from,
                const std::vector<int>& to,
                double bytes,
                double back_bytes) const {
    double most_s = 0;
    for (const int a : from) {
      for (const int b : to) {
        if (a == b) continue;
        const double there_s = bytes / link(a, b).bandwidth_bytes_per_s;
        const double back_s = back_bytes / link(b, a).bandwidth_bytes_per_s;
        most_s =
            std::max(most_s, is_half_duplex(a, b) ? there_s + back_s : std::max(there_s, back_s));
      }
    }
    return most_s;
  }

  // The slowest transfer between any two machines that send to each other at once.
  double exchange_s(const std::vector<int>& machines, double bytes, double latencies = 1) const {
    double slowest = 0;
    for (const int a : machines) {
      for (const int b : machines) {
        if (a == b) continue;
        slowest = std::max(
            slowest, slowest_s({a}, {b}, is_half_duplex(a, b) ? 2 * bytes : bytes, latencies));
      }
    }
    return slowest;
  }

  // Two machines exchange everything; more send and receive all but their part, twice.
  double all_sum_s(const std::vector<int>& machines, std::int64_t parameters) const {
    const double bytes = static_cast<double>(parameters) * 4;
    const auto count = static_cast<double>(machines.size());
    if (machines.size() < 2) return 0;
    if (machines.size() == 2) return exchange_s(machines, bytes);
    return 2 * exchange_s(machines, bytes - bytes / count);
  }

  // The parameters of tied layer 0 are reduced separately.
  std::int64_t summed(int layer) const {
    return layer == 0 && is_tied() ? 0 : p_.layers[at(layer)].parameters;
  }

  int pieces(const OracleStage& stage) const {
    int layers = 0;
    for (int l = stage.first; l < stage.last; ++l) layers += summed(l) > 0 ? 1 : 0;
    return std::clamp(layers, 1, 4);
  }

  // The time of a machine's first sends, without latency.
  double first_busy_s(const OracleStage& stage) const {
    std::int64_t parameters = 0;
    for (int l = stage.first; l < stage.last; ++l) parameters += summed(l);
    const auto count = static_cast<double>(stage.machines.size());
    const double bytes = 4 * static_cast<double>(parameters);
    return exchange_s(stage.machines, count > 2 ? bytes - bytes / count : bytes, /*latencies=*/0);
  }

  void rate() {
    if (stages_ != 0 && static_cast<int>(pipeline_.size()) != stages_) return;
    if (!obeys_pins()) return;
    const int count = static_cast<int>(pipeline_.size());
    const double m = shape_.micro_batches;
    double sum_s = 0;
    double period_s = 0;
    std::vector<double> link_s(at(count) + 1, 0);  // [boundary before stage]
    int under_way = 0;                             // micro-batches in flight in this stage and the
                                                   // later ones
    for (int i = count - 1; i >= 0; --i) {
      const OracleStage& stage = pipeline_[at(i)];
      const std::vector<int> batch_split = split_batch(stage);
      double busy_s = 0;
      const int replicas = static_cast<int>(stage.machines.size());
      const bool is_last = i + 1 == count;
      // One micro-batch on each machine of the last stage; `warm_up` more for each machine before
      // it.
      under_way += (is_last ? 1 : shape_.warm_up) * replicas;
      const int most = shape_.limits_in_flight() ? std::min(under_way, shape_.micro_batches)
                                                 : shape_.micro_batches;
      const int window = is_last && shape_.limits_in_flight() ? 1 : most;
      const bool has_tied = is_tied() && (stage.first == 0 || stage.last == layer_count());
      const double reduce_s =
          all_sum_s(stage.machines, parameters(stage) - (has_tied ? p_.layers[0].parameters : 0));
      for (std::size_t k = 0; k < batch_split.size(); ++k) {
        const int machine = stage.machines[k];
        if (batch_split[k] == 0 || !fits(stage, machine, held(batch_split, k, window))) return;
        double micro_s = pass_s(machine, stage);
        if (i > 0) micro_s += crossing_s(machine, stage.first - 1, pipeline_[at(i - 1)].half);
        if (i + 1 < count) micro_s += crossing_s(machine, stage.last - 1, stage.half);
        sum_s += batch_split[k] / m * micro_s;
        // The first sends of the all-reduce overlap the last backward, layer by layer.
        const double beside_s = std::min(first_busy_s(stage), last_backward_s(machine, stage)) *
                                (1 - 1.0 / pieces(stage));
        busy_s = std::max(busy_s, batch_split[k] / m * micro_s + (reduce_s - beside_s) / m);
      }
      if (i + 1 < count) {
        // A frame has a header of 64 bytes.
        const double back_bytes = 64 + boundary_floats(stage.last - 1) * (stage.half ? 2 : 4);
        const double bytes = back_bytes + exact_bytes(stage.last - 1);
        const auto& next = pipeline_[at(i + 1)].machines;
        sum_s += 2 * slowest_hop_s(stage.machines, next, bytes, back_bytes);
        link_s[at(i + 1)] = load_s(stage.machines, next, bytes, back_bytes);
      }
      period_s = std::max(period_s, busy_s);
      if (m > window && !is_last) {
        period_s = std::max(period_s, sum_s * (m - window) / (window * (m - 1)));
      }
    }
    for (int i = 1; i < count; ++i) {  // a stage has the traffic of both its boundaries
      period_s = std::max(period_s, link_s[at(i)] + (i + 1 < count ? link_s[at(i + 1)] : 0));
    }
    double step_s = sum_s + (m - 1) * period_s;
    if (is_tied() && p_.layers[0].parameters > 0) {
      std::vector<int> users = pipeline_.front().machines;
      if (count > 1) {
        users.insert(users.end(), pipeline_.back().machines.begin(),
                     pipeline_.back().machines.end());
      }
      step_s += all_sum_s(users, p_.layers[0].parameters);
    }
    best_.step_s = std::min(best_.step_s, step_s);
    const bool single = std::all_of(pipeline_.begin(), pipeline_.end(),
                                    [](const auto& stage) { return stage.machines.size() == 1; });
    if (single) best_.single_slot_period_s = std::min(best_.single_slot_period_s, period_s);
  }

  double crossing_s(int machine, int boundary, bool half) const {
    const MachineSketch& sketch = p_.machines[at(machine)];
    return 2 * sketch.message_s +
           (half ? 2 * sketch.half_s_per_float * boundary_floats(boundary) : 0);
  }

  const Problem& p_;
  StepShape shape_;
  int stages_ = 0;
  std::vector<OracleStage> pipeline_;
  std::map<int, bool> used_;
  Best best_;
};

}  // namespace motley
