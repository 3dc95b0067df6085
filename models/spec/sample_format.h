// SampleFormat: the data that a model takes: one sample's inputs and the target for the loss.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/package/tensor_spec.h"

namespace motley {

struct SampleFormat {
  std::vector<SampleInput> inputs;  // at least one; names are distinct
  TensorSpec target;
  std::int64_t target_limit = 0;  // integers are from 0 to below it; 0 for floats
  // Whether the target is the only input one token later: such data is one sequence of tokens.
  bool is_next_token = false;
  // An integer of the target, within its limit or not, that the loss ignores.
  std::optional<std::int64_t> ignored_target;

  // The elements of all inputs of one sample.
  [[nodiscard]] std::int64_t input_count() const {
    std::int64_t count = 0;
    for (const SampleInput& input : inputs) count += input.tensor.count();
    return count;
  }
};

}  // namespace motley
