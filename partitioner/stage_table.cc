#include "partitioner/stage_table.h"

namespace motley {

StageTable::StageTable(const CostModel& cost, const StepShape& shape)
    : cost_(cost), shape_(shape), layer_count_(cost.layer_count()) {
  const int slots = static_cast<int>(cost.slots().size());
  stages_.resize(index(slots, 0, 1));
  for (int slot = 0; slot < slots; ++slot) {
    for (int first = 0; first < layer_count_; ++first) {
      double work_s = 0;
      for (int last = first + 1; last <= layer_count_; ++last) {
        const LayerSample layer = cost.layer(slot, last - 1, shape.micro_batch);
        work_s += layer.forward_s + layer.backward_s;
        Stage& stage = stages_[index(slot, first, last)];
        stage.work_s = work_s;
        stage.busy_s = work_s + cost.optimizer_s(slot, first, last) / shape.micro_batches;
        // Memory is linear in the micro-batches in flight, so two points give it for all.
        stage.fixed_bytes = cost.memory_bytes(slot, first, last, shape.micro_batch, 0);
        stage.bytes_per_micro_batch =
            cost.memory_bytes(slot, first, last, shape.micro_batch, 1) - stage.fixed_bytes;
      }
    }
  }
}

}  // namespace motley
