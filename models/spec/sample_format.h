// SampleFormat: what a model takes of its data: one sample's input, and what the loss compares its
// output with.
#pragma once

#include <cstdint>
#include <optional>

#include "models/package/tensor_spec.h"

namespace motley {

struct SampleFormat {
  TensorSpec input;
  TensorSpec target;
  // Integers lie from 0 to below these; 0 for floats.
  std::int64_t input_limit = 0;
  std::int64_t target_limit = 0;
  // Whether the target is the input one token later: such data is one row of tokens.
  bool is_next_token = false;
  // An integer of the target, in or out of its limit, that the loss leaves out.
  std::optional<std::int64_t> ignored_target;
};

}  // namespace motley
