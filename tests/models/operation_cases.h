// The cases of tests/models/operations/ (README.md there): calls of every operation that a package
// may use. tests/python/operation_cases.py reads the same files, and makes the same tensors of
// them.
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
  std::vector<std::string> tensors;  // what each of them is: "f 2x3 0..1"
  Graph graph;                       // takes them, and gives what the operation makes
};

// All of them, by operation. REQUIRES: this LibTorch knows the operations.
[[nodiscard]] std::vector<OperationCase> read_operation_cases();

// Its values follow from the text and the seed.
[[nodiscard]] at::Tensor make_case_tensor(const std::string& spec, int seed);

struct LayoutVariant {
  std::string name;  // "1 transposed": the second tensor is
  std::vector<at::Tensor> tensors;
};

// The tensors in other layouts: each alone, all in the same one, all in different ones.
[[nodiscard]] std::vector<LayoutVariant> layout_variants(const OperationCase& call,
                                                         const std::vector<at::Tensor>& tensors);

}  // namespace motley::testing
