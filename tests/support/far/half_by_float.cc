#include "tests/support/far/half_by_float.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

namespace motley::far {
namespace {

// Operations known to lack fp16. Detecting it by an exception on each call would dominate a test's
// time. Thread-safe.
class KnownOperations {
 public:
  bool has(const c10::OperatorName& name) const {
    const std::lock_guard lock(mutex_);
    return names_.count(name) > 0;
  }

  void add(const c10::OperatorName& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<c10::OperatorName> names_;
};

bool is_half(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         value.toTensor().scalar_type() == at::kHalf;
}

bool lacks_half(const c10::Error& error) {
  const std::string_view said = error.what_without_backtrace();
  return said.find("not implemented for 'Half'") != std::string_view::npos ||
         said.find("but found Half") != std::string_view::npos;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Schemas represent dtypes as integers.
bool asks_for_half(const c10::Argument& argument, const c10::IValue& value) {
  const std::string& name = argument.name();
  return (name == "dtype" || name == "input_dtype") && value.isInt() &&
         value.toInt() == static_cast<std::int64_t>(at::kHalf);
}

void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

void call_widened(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack->size() - arguments.size();
  std::vector<std::pair<at::Tensor, at::Tensor>> written;  // the original and the widened tensor
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (asks_for_half(arguments[i], value)) value = static_cast<std::int64_t>(at::kFloat);
    if (!is_half(value)) continue;
    const at::Tensor narrow = value.toTensor();
    const at::Tensor wide = narrow.to(at::kFloat);
    if (writes(arguments[i])) written.emplace_back(narrow, wide);
    value = wide;
  }
  call(op, stack);
  for (const auto& [narrow, wide] : written) narrow.copy_(wide);
  for (std::size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor made = value.toTensor();
    const auto target = std::find_if(written.begin(), written.end(),
                                     [&](const auto& each) { return each.second.is_same(made); });
    if (target != written.end()) {
      value = target->first;
    } else if (made.scalar_type() == at::kFloat) {
      value = made.to(at::kHalf);
    }
  }
}

}  // namespace

void call_on_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!std::any_of(stack->begin(), stack->end(), is_half)) return call(op, stack);
  static KnownOperations without_half;
  if (without_half.has(op.operator_name())) return call_widened(op, stack);
  const torch::jit::Stack before = *stack;
  try {
    call(op, stack);
  } catch (const c10::Error& error) {
    if (!lacks_half(error)) throw;
    without_half.add(op.operator_name());
    *stack = before;
    call_widened(op, stack);
  }
}

}  // namespace motley::far
