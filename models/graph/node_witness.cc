#include "models/graph/node_witness.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "models/graph/libtorch_operation.h"
#include "models/graph/node_arguments.h"
#include "models/package/operations.h"

namespace motley {
namespace {

std::size_t place_of(ValueId value) {
  return static_cast<std::size_t>(value.index);
}

bool is_float_tensor(const at::Tensor& tensor) {
  return tensor.defined() && tensor.scalar_type() == at::kFloat;
}

at::Tensor host_copy(const at::Tensor& tensor, at::ScalarType floats) {
  const at::Tensor there = tensor.to(at::kCPU);
  return (is_float_tensor(there) ? there.to(floats) : there).contiguous();
}

// The stack with copies of the node's arguments; nullopt if one is missing.
std::optional<torch::jit::Stack> copied_arguments(const NodeArguments& arguments,
                                                  const std::vector<at::Tensor>& values,
                                                  at::ScalarType floats) {
  torch::jit::Stack stack = arguments.stack;
  for (const auto& [place, value] : arguments.tensors) {
    if (!values[place_of(value)].defined()) return std::nullopt;
    stack[place] = host_copy(values[place_of(value)], floats);
  }
  for (const NodeArguments::TensorList& list : arguments.lists) {
    c10::List<at::Tensor> tensors;
    c10::List<c10::optional<at::Tensor>> some;
    for (const auto& value : list.values) {
      if (value && !values[place_of(*value)].defined()) return std::nullopt;
      const auto copy = value
                            ? c10::optional<at::Tensor>(host_copy(values[place_of(*value)], floats))
                            : c10::nullopt;
      if (copy) tensors.push_back(*copy);
      some.push_back(copy);
    }
    stack[list.place] = list.takes_none ? c10::IValue(some) : c10::IValue(tensors);
  }
  return stack;
}

// The results; empty if the operation refuses such arguments.
std::vector<at::Tensor> results_in(const c10::OperatorHandle& operation,
                                   const NodeArguments& arguments,
                                   const std::vector<at::Tensor>& values,
                                   at::ScalarType floats) {
  std::optional<torch::jit::Stack> stack = copied_arguments(arguments, values, floats);
  if (!stack) return {};
  try {
    operation.callBoxed(*stack);
  } catch (const std::exception&) {
    return {};  // such as an operation without double precision
  }
  if (stack->size() == 1 && stack->front().isTensorList()) return stack->front().toTensorVector();
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : *stack) {
    if (!value.isTensor()) return {};
    results.push_back(value.toTensor());
  }
  return results;
}

double norm_of(const at::Tensor& tensor) {
  return tensor.norm().item().toDouble();
}

// A sum may cancel: its result counts as at least this share of its terms.
double least_of_sum(const NodeArguments& arguments,
                    const std::vector<at::Tensor>& values,
                    const at::Tensor& result) {
  constexpr double kLeastOfSum = 1e-3;
  double least = 0;
  for (const auto& [place, value] : arguments.tensors) {
    const at::Tensor& taken = values[place_of(value)];
    if (is_float_tensor(taken) && taken.numel() > result.numel()) {
      least = std::max(least, kLeastOfSum * norm_of(host_copy(taken, at::kDouble)));
    }
  }
  return least;
}

}  // namespace

std::optional<double> node_deviation(const Node& node,
                                     const std::vector<at::Tensor>& values,
                                     std::int64_t samples) {
  const auto operation = find_in_libtorch(node.operation);
  if (!operation || node.operation.find("empty") != std::string_view::npos) return std::nullopt;
  auto [arguments, fault] = prepare_arguments(node, operation->schema(), c10::kCPU);
  if (!fault.empty() || !set_samples(arguments, samples).empty()) return std::nullopt;
  std::vector<at::Tensor> right = results_in(*operation, arguments, values, at::kDouble);
  if (right.empty()) right = results_in(*operation, arguments, values, at::kFloat);
  std::optional<double> most;
  for (std::size_t r = 0; r < right.size() && r < static_cast<std::size_t>(node.results); ++r) {
    const at::Tensor& found = values[place_of(node.first_result) + r];
    if (!is_float_tensor(found) || !right[r].defined() || !right[r].is_floating_point()) continue;
    if (found.sizes() != right[r].sizes()) return std::numeric_limits<double>::infinity();
    const at::Tensor exact = right[r].to(at::kDouble).nan_to_num(0, 0, 0);
    const at::Tensor here = host_copy(found, at::kDouble).nan_to_num(0, 0, 0);
    const double scale = std::max(norm_of(exact), least_of_sum(arguments, values, exact));
    const double apart = norm_of(here - exact);
    most = std::max(most.value_or(0), apart == 0 ? 0 : apart / scale);
  }
  return most;
}

}  // namespace motley
