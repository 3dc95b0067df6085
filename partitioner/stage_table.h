// StageTable: the cost of every run of layers on every slot at one micro-batch size, looked up in
// constant time by the searches over cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partitioner/cost_model.h"

namespace motley {

// How a step is cut into micro-batches and run.
struct StepShape {
  int micro_batch = 1;    // samples
  int micro_batches = 1;  // per step
  bool gpipe = false;     // else 1F1B

  // Micro-batches between forward and backward in the stage that is `depth`-th from the end (the
  // last is 1).
  [[nodiscard]] int in_flight(int depth) const {
    return gpipe || depth > micro_batches ? micro_batches : depth;
  }
};

class StageTable {
 public:
  // `cost` must outlive the table.
  StageTable(const CostModel& cost, const StepShape& shape);

  [[nodiscard]] const CostModel& cost() const { return cost_; }

  [[nodiscard]] const StepShape& shape() const { return shape_; }

  [[nodiscard]] int layer_count() const { return layer_count_; }

  // Forward and backward of one micro-batch.
  [[nodiscard]] double work_s(int slot, int first, int last) const {
    return at(slot, first, last).work_s;
  }

  // The same plus the micro-batch's share of the update.
  [[nodiscard]] double busy_s(int slot, int first, int last) const {
    return at(slot, first, last).busy_s;
  }

  [[nodiscard]] std::int64_t memory_bytes(int slot, int first, int last, int in_flight) const {
    const Stage& stage = at(slot, first, last);
    return stage.fixed_bytes + in_flight * stage.bytes_per_micro_batch;
  }

  [[nodiscard]] bool fits(int slot, int first, int last, int in_flight) const {
    return memory_bytes(slot, first, last, in_flight) <=
           cost_.slots()[static_cast<std::size_t>(slot)].memory_bytes;
  }

 private:
  struct Stage {
    double work_s = 0;
    double busy_s = 0;
    std::int64_t fixed_bytes = 0;
    std::int64_t bytes_per_micro_batch = 0;
  };

  [[nodiscard]] std::size_t index(int slot, int first, int last) const {
    const auto layers = static_cast<std::size_t>(layer_count_);
    return (static_cast<std::size_t>(slot) * layers + static_cast<std::size_t>(first)) * layers +
           static_cast<std::size_t>(last - 1);
  }

  [[nodiscard]] const Stage& at(int slot, int first, int last) const {
    return stages_[index(slot, first, last)];
  }

  const CostModel& cost_;
  StepShape shape_;
  int layer_count_;
  std::vector<Stage> stages_;  // [slot][first][last - 1]
};

}  // namespace motley
