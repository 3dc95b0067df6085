// The arguments of a node in the form that LibTorch's dispatcher takes them. Private to
// models/graph.
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

// All that does not change from run to run stands in `stack`; the rest has its places there.
struct NodeArguments {
  struct TensorList {
    std::size_t place = 0;
    std::vector<std::optional<ValueId>> values;
    bool takes_none = false;  // a list of optional tensors
  };

  // In what form a schema wants numbers. A tensor that stands for a number does not decide the type
  // of a result, as in PyTorch.
  enum class Form { kNumber, kFloat, kTensor, kIntegers, kFloats, kBools };

  // Numbers of which one at least depends on the batch.
  struct BatchNumber {
    std::size_t place = 0;
    std::vector<ListItem> items;
    Form form = Form::kNumber;
  };

  torch::jit::Stack stack;
  std::vector<std::pair<std::size_t, ValueId>> tensors;  // {place, value}
  std::vector<TensorList> lists;
  std::vector<BatchNumber> batch_numbers;
};

struct NodeArgumentsOr {
  NodeArguments arguments;
  std::string fault;  // why they are not those of the schema, or ""
};

// Where an operation may be told a device and the node says none, it is `device`: what makes
// tensors out of nothing would make them on the host. Numbers that stand for tensors stay there, as
// PyTorch has them.
[[nodiscard]] NodeArgumentsOr prepare_arguments(const Node& node,
                                                const c10::FunctionSchema& schema,
                                                c10::Device device);

// Writes the numbers that depend on the batch into the stack. Returns why that cannot be, or "".
[[nodiscard]] std::string set_samples(NodeArguments& arguments, std::int64_t samples);

}  // namespace motley
