// The arguments of a node in the form that LibTorch's dispatcher takes. Private to models/graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include "models/package/graph.h"

namespace motley {

// `stack` holds the arguments that are equal in all runs, and the positions of the others.
struct NodeArguments {
  struct TensorList {
    std::size_t place = 0;
    std::vector<std::optional<ValueId>> values;
    bool takes_none = false;  // a list of optional tensors
  };

  // The form in which a schema takes numbers. A tensor made from a number does not determine the
  // dtype of a result, as in PyTorch.
  enum class Form { kNumber, kFloat, kTensor, kIntegers, kFloats, kBools };

  // Numbers of which at least one depends on the batch.
  struct BatchNumber {
    std::size_t place = 0;
    std::vector<ListItem> items;
    Form form = Form::kNumber;
  };

  torch::jit::Stack stack;
  std::vector<std::pair<std::size_t, ValueId>> tensors;  // {position, value}
  std::vector<TensorList> lists;
  std::vector<BatchNumber> batch_numbers;
};

struct NodeArgumentsOr {
  NodeArguments arguments;
  std::string fault;  // why they do not match the schema, or ""
};

// If an operation has a device argument and the node does not set it, it is set to `device`, since
// operations that create tensors would otherwise create them on the host. Tensors made from numbers
// stay on the host, as in PyTorch.
[[nodiscard]] NodeArgumentsOr prepare_arguments(const Node& node,
                                                const c10::FunctionSchema& schema,
                                                c10::Device device);

// Writes the numbers that depend on the batch into the stack. Returns why that is impossible, or
// "".
[[nodiscard]] std::string set_samples(NodeArguments& arguments, std::int64_t samples);

}  // namespace motley
