// What `motley ckpt show` adds to a checkpoint's facts: the layers of its model with their tensors,
// and the plan that wrote it.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "tools/ckpt/weights_inputs.h"

namespace motley {

// "layer  tensor  type  shape  bytes  file", a line a parameter and one for each layer's total, in
// the model's order. What is of no layer that is known stands alone.
[[nodiscard]] std::string tensors_text(const OpenedWeights& weights);

// [{"layer", "bytes", "tensors": [{"name", "dtype", "shape", "bytes", "file", "optimizer_bytes"}]}]
[[nodiscard]] Json layers_to_json(const OpenedWeights& weights);

// "3 files of parameters; micro-batches of 2, chunks held by [1, 2] ranks, codecs [int8], …".
[[nodiscard]] std::string plan_text(const Manifest& manifest);
[[nodiscard]] Json plan_mark_to_json(const Manifest& manifest);

}  // namespace motley
