// The weights that multiply the activations of hidden layers: those that an optimizer of matrices,
// such as Muon, updates. Not embeddings, heads, biases and norms.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "models/spec/matrix_shape.h"
#include "models/spec/model_spec.h"

namespace motley {

// By parameter name. The rule:
//   - gpt2, mlp: the matrices of all linear layers but the head.
//   - package: a parameter with two dimensions that is an operand of a matrix product (mm, addmm,
//     bmm, baddbmm), and a kernel of a convolution, flattened to its output channels times the
//     rest, each also by way of views and transposes. Not a parameter that anything else reads too,
//     such as an embedding, and not the head: of the last layer the matrix that is used last, and
//     those with a dimension of target_limit, the number of classes.
// No tied parameter, and none with one row or column.
[[nodiscard]] std::map<std::string, MatrixShape> hidden_matrices(const ModelSpec& model);

}  // namespace motley
