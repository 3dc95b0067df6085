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

[[nodiscard]] NodeArgumentsOr prepare_arguments(const Node& node,
                                                const c10::FunctionSchema& schema);

// Writes the numbers that depend on the batch into the stack. Returns why that cannot be, or "".
[[nodiscard]] std::string set_samples(NodeArguments& arguments, std::int64_t samples);

// Why a number among these arguments cannot be meant, or "": it asks for a tensor of a size that no
// package has, which is found before a kernel allocates it, or is 0 where kernels divide by it
// without a look.
[[nodiscard]] std::string unfit_number(const NodeArguments& arguments,
                                       const c10::FunctionSchema& schema);

}  // namespace motley
