#include "checkpoint/save/finite.h"

#include <fmt/format.h>

#include "checkpoint/not_finite.h"

namespace motley {

Result<void> require_finite(const std::vector<TensorView>& parameters) {
  for (const TensorView& tensor : parameters) {
    const std::size_t lost = count_not_finite(tensor.values);
    if (lost == 0) continue;
    return Error{
        ErrorCode::kDiverged, "the training diverged: its parameters are not finite",
        fmt::format("{} of the {} values of {} are not finite", lost, tensor.values.size(),
                    tensor.name),
        "lower train.lr, set train.clip or lengthen train.warmup_steps; nothing of this step was "
        "saved"};
  }
  return {};
}

}  // namespace motley
