// StageTable: the cost of every run of layers on every slot at one micro-batch size, looked up in
// constant time by the searches. Slots of equal cost share their tables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "plan/plan.h"
#include "plan/schedule_facts.h"

namespace motley {

// The division of a step into micro-batches, and their order.
struct StepShape {
  int micro_batch = 1;    // samples
  int micro_batches = 1;  // per step
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  int warm_up = 1;  // with a limit: micro-batches in flight of a replica beyond those behind it

  friend bool operator==(const StepShape&, const StepShape&) = default;

  [[nodiscard]] bool limits_in_flight() const { return schedule_facts(schedule).limits_in_flight; }

  [[nodiscard]] bool splits_backward() const { return schedule_facts(schedule).splits_backward; }

  // Micro-batches in flight from a stage of that many replicas to the end of the model. `behind`:
  // the same from the next stage on; 0: this is the last stage, where each replica has one. More
  // micro-batches keep more replicas busy, so each replica adds its own window.
  [[nodiscard]] int under_way(int replicas, int behind) const {
    if (!limits_in_flight()) return micro_batches;
    return std::min(behind == 0 ? replicas : behind + warm_up * replicas, micro_batches);
  }

  // Of these, the ones that may be between forward and backward in the stage itself. The last stage
  // computes both of a micro-batch consecutively.
  [[nodiscard]] int in_flight(int replicas, int behind) const {
    return behind == 0 && limits_in_flight() ? 1 : under_way(replicas, behind);
  }

  // The same in a pipeline of single slots, for the `depth`-th stage from the end (the last is 1).
  [[nodiscard]] int in_flight(int depth) const {
    return limits_in_flight() ? std::min(1 + warm_up * (depth - 1), micro_batches) : micro_batches;
  }
};

class StageTable {
 public:
  // `cost` must outlive the table.
  StageTable(const CostModel& cost, const StepShape& shape);

  // The same costs with another schedule of micro-batches of the same size.
  [[nodiscard]] StageTable reshaped(const StepShape& shape) const;

  [[nodiscard]] const CostModel& cost() const { return cost_; }

  [[nodiscard]] const StepShape& shape() const { return shape_; }

  [[nodiscard]] int layer_count() const { return layer_count_; }

  [[nodiscard]] int slot_count() const { return static_cast<int>(columns_->of_slot.size()); }

  // Forward and backward of one micro-batch; with recompute the forward twice.
  [[nodiscard]] double pass_s(int slot, int first, int last, bool recompute) const {
    const Column& column = of(slot);
    const auto f = static_cast<std::size_t>(first);
    const auto l = static_cast<std::size_t>(last);
    const double pass_s = column.pass_before_s[l] - column.pass_before_s[f];
    return recompute ? pass_s + column.forward_before_s[l] - column.forward_before_s[f] : pass_s;
  }

  // Of one micro-batch.
  [[nodiscard]] double forward_s(int slot, int first, int last) const {
    return between(of(slot).forward_before_s, first, last);
  }

  // The two parts of backward; all of it counts as the first if the profile does not separate them.
  [[nodiscard]] double backward_input_s(int slot, int first, int last) const {
    return between(of(slot).input_before_s, first, last);
  }

  [[nodiscard]] double backward_weight_s(int slot, int first, int last) const {
    return between(of(slot).weight_before_s, first, last);
  }

  // Of one step.
  [[nodiscard]] double update_s(int slot, int first, int last) const {
    return cost_.optimizer_s(slot, first, last);
  }

  [[nodiscard]] CostModel::MemoryParts memory_parts(int slot, int first, int last) const;

  [[nodiscard]] std::int64_t memory_bytes(
      int slot, int first, int last, int in_flight, bool recompute) const {
    return memory_parts(slot, first, last).total(in_flight, recompute);
  }

  [[nodiscard]] bool fits(int slot, int first, int last, int in_flight, bool recompute) const {
    return memory_bytes(slot, first, last, in_flight, recompute) <=
           cost_.slots()[static_cast<std::size_t>(slot)].memory_bytes;
  }

 private:
  // Of slots with equal costs.
  struct Column {
    int slot = 0;                                      // one of them
    std::vector<double> forward_before_s;              // [layer] of all layers before it
    std::vector<double> pass_before_s;                 // [layer]
    std::vector<double> input_before_s;                // [layer]
    std::vector<double> weight_before_s;               // [layer]
    std::vector<std::int64_t> saved_before;            // [layer]
    std::vector<std::vector<std::int64_t>> workspace;  // [k][layer] most of 2^k layers from there
  };

  struct Columns {
    std::vector<Column> all;
    std::vector<std::size_t> of_slot;  // [slot]
  };

  [[nodiscard]] static double between(const std::vector<double>& before_s, int first, int last) {
    return before_s[static_cast<std::size_t>(last)] - before_s[static_cast<std::size_t>(first)];
  }

  [[nodiscard]] const Column& of(int slot) const {
    return columns_->all[columns_->of_slot[static_cast<std::size_t>(slot)]];
  }

  [[nodiscard]] Columns make_columns() const;
  [[nodiscard]] Column make_column(int slot) const;

  const CostModel& cost_;
  StepShape shape_;
  int layer_count_;
  std::shared_ptr<const Columns> columns_;  // shared by all shapes of one micro-batch size
};

}  // namespace motley
