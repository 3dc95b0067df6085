// The additional output of `motley ckpt show`: the layers of the model with their tensors, and the
// plan that wrote the checkpoint.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "cli/ckpt/weights_inputs.h"

namespace motley {

// "layer  tensor  type  shape  bytes  file": a line per parameter and one for each layer's total,
// in the model's order. Tensors of no known layer are listed separately.
[[nodiscard]] std::string tensors_text(const OpenedWeights& weights);

// [{"layer", "bytes", "tensors": [{"name", "dtype", "shape", "bytes", "file", "optimizer_bytes"}]}]
[[nodiscard]] Json layers_to_json(const OpenedWeights& weights);

// "3 files of parameters; micro-batches of 2, chunks held by [1, 2] ranks, codecs [int8], …".
[[nodiscard]] std::string plan_text(const Manifest& manifest);
[[nodiscard]] Json plan_fingerprint_to_json(const Manifest& manifest);

}  // namespace motley
