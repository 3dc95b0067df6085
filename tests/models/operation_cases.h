// The test cases of tests/models/operations/ (README.md there): calls of every operation that a
// package may use. tests/python/operation_cases.py reads the same files and creates the same
// tensors.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/package/graph.h"
#include "tests/models/tensor_layouts.h"

namespace motley::testing {

struct OperationCase {
  std::string name;                  // the operation and the number of the call
  std::string operation;             // "aten::gelu_backward"
  std::vector<std::string> tensors;  // their descriptions: "f 2x3 0..1"
  Graph graph;                       // from the tensors to the results of the operation
};

// All cases, by operation. REQUIRES: this LibTorch has the operations.
[[nodiscard]] std::vector<OperationCase> read_operation_cases();

// The values depend on the description and the seed.
[[nodiscard]] at::Tensor make_case_tensor(const std::string& spec, int seed);

struct LayoutVariant {
  std::string name;  // "1 transposed": the second tensor is transposed
  std::vector<at::Tensor> tensors;
};

// The tensors in other layouts: one at a time, all in the same layout, all in different layouts.
[[nodiscard]] std::vector<LayoutVariant> layout_variants(const OperationCase& call,
                                                         const std::vector<at::Tensor>& tensors);

}  // namespace motley::testing
