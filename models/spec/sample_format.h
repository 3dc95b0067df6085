// SampleFormat: the data that a model takes: one sample's input and the target for the loss.
#pragma once

#include <cstdint>
#include <optional>

#include "models/package/tensor_spec.h"

namespace motley {

struct SampleFormat {
  TensorSpec input;
  TensorSpec target;
  // Integers are from 0 to below these; 0 for floats.
  std::int64_t input_limit = 0;
  std::int64_t target_limit = 0;
  // Whether the target is the input one token later: such data is one sequence of tokens.
  bool is_next_token = false;
  // An integer of the target, within its limit or not, that the loss ignores.
  std::optional<std::int64_t> ignored_target;
};

}  // namespace motley
