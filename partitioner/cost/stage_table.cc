#include "partitioner/cost/stage_table.h"

#include <bit>

#include "base/check.h"

namespace motley {

StageTable::StageTable(const CostModel& cost, const StepShape& shape)
    : cost_(cost),
      shape_(shape),
      layer_count_(cost.layer_count()),
      columns_(std::make_shared<const Columns>(make_columns())) {}

StageTable StageTable::reshaped(const StepShape& shape) const {
  MOTLEY_CHECK(shape.micro_batch == shape_.micro_batch, "micro-batches of {} instead of {}",
               shape.micro_batch, shape_.micro_batch);
  StageTable table = *this;
  table.shape_ = shape;
  return table;
}

StageTable::Columns StageTable::make_columns() const {
  Columns columns;
  for (int slot = 0; slot < static_cast<int>(cost_.slots().size()); ++slot) {
    std::size_t c = 0;
    while (c < columns.all.size() && !cost_.same_costs(columns.all[c].slot, slot)) ++c;
    if (c == columns.all.size()) columns.all.push_back(make_column(slot));
    columns.of_slot.push_back(c);
  }
  return columns;
}

StageTable::Column StageTable::make_column(int slot) const {
  Column column{slot, {0}, {0}, {0}, {0}, {0}, {{}}};
  for (int l = 0; l < layer_count_; ++l) {
    const LayerSample layer = cost_.layer(slot, l, shape_.micro_batch);
    column.forward_before_s.push_back(column.forward_before_s.back() + layer.forward_s);
    column.pass_before_s.push_back(column.pass_before_s.back() + layer.forward_s +
                                   layer.backward_s);
    column.input_before_s.push_back(column.input_before_s.back() + layer.backward_input_s());
    column.weight_before_s.push_back(column.weight_before_s.back() + layer.backward_weight_s());
    column.saved_before.push_back(column.saved_before.back() + layer.saved_bytes);
    column.workspace[0].push_back(layer.workspace_bytes);
  }
  for (std::size_t width = 1; 2 * width <= column.workspace[0].size(); width *= 2) {
    const std::vector<std::int64_t>& half = column.workspace.back();
    std::vector<std::int64_t> level(half.size() - width);
    for (std::size_t l = 0; l < level.size(); ++l) level[l] = std::max(half[l], half[l + width]);
    column.workspace.push_back(std::move(level));
  }
  return column;
}

CostModel::MemoryParts StageTable::memory_parts(int slot, int first, int last) const {
  const Column& column = of(slot);
  const auto f = static_cast<std::size_t>(first);
  const auto l = static_cast<std::size_t>(last);
  CostModel::MemoryParts parts = cost_.fixed_memory(slot, first, last, shape_.micro_batch);
  parts.saved_bytes = column.saved_before[l] - column.saved_before[f] -
                      cost_.sizes().saved_twice_bytes(first, last, shape_.micro_batch);
  const auto level = static_cast<std::size_t>(std::bit_width(l - f) - 1);
  parts.workspace_bytes =
      std::max(column.workspace[level][f], column.workspace[level][l - (std::size_t{1} << level)]);
  return parts;
}

}  // namespace motley
