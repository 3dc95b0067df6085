#include "partitioner/search/no_plan_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/candidates.h"
#include "partitioner/search/memory_deficit.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr std::size_t kPinsShown = 8;

// For a model that fits.
Error unwanted(const PlanOptions& options) {
  if (options.pins == Pins{}) {
    return {ErrorCode::kConfig, fmt::format("no plan with {} stages was found", options.stages),
            "the model fits, but no cut into this number of stages fits on all devices",
            "use another number of stages, or set their first layers (parallel.cuts)"};
  }
  std::vector<std::string> pins = pin_texts(options.pins);
  const bool is_long = pins.size() > kPinsShown;
  pins.resize(std::min(pins.size(), kPinsShown));
  return {ErrorCode::kConfig, "no plan satisfies the pins",
          "the model fits without them, but not with them",
          pins.size() == 1 ? fmt::format("remove the pin '{}'", pins.front())
                           : fmt::format("remove one of these pins: '{}'{}",
                                         fmt::join(pins, "', '"), is_long ? ", …" : "")};
}

}  // namespace

Error no_plan_error(const ModelSpec& model,
                    const CostModel& cost,
                    const SearchSpace& space,
                    const PlanOptions& options) {
  std::optional<MemoryDeficit> least;
  StepShape least_shape;
  for (const StepShape& shape : step_shapes(options)) {
    const StageTable table(cost, shape);
    const bool recompute = space.recompute != Recompute::kNever;
    const MemoryDeficit memory_deficit =
        options.cuts.empty() ? smallest_memory_deficit(table, space, recompute)
                             : memory_deficit_of(table, given_stages(options), recompute);
    if (least && least->missing_bytes <= memory_deficit.missing_bytes) continue;
    least = memory_deficit;
    least_shape = shape;
  }
  if (least->missing_bytes <= 0) return unwanted(options);
  const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(least->slot)];
  const auto layer_name = [&](int l) { return model.layers[static_cast<std::size_t>(l)].name; };
  const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  return {ErrorCode::kInfeasible,
          fmt::format("the model does not fit: {}/{} lacks {} of memory", slot.machine, slot.device,
                      text(least->missing_bytes)),
          fmt::format("even in the best cut, layers {} … {} with micro-batches of {} need {} of "
                      "its {}",
                      layer_name(least->first_layer), layer_name(least->last_layer - 1),
                      least_shape.micro_batch, text(least->needed_bytes), text(slot.memory_bytes)),
          "add a machine or memory, or make the model or train.micro_batch smaller"};
}

}  // namespace motley
