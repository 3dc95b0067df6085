// The far device's operations: the processor's kernels, called on the hidden memory.
//
// Registered for every operation that has a processor kernel, even where LibTorch would compose it
// from others on a new kind of device: the bits must be the processor's.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "tests/support/far/far_state.h"
#include "tests/support/far/half_by_float.h"
#include "tests/support/far/here.h"
#include "tests/support/far/host_views.h"
#include "tests/support/far/torch_versions.h"

namespace motley::far {
namespace {

constexpr std::string_view kNamespace = "aten::";

// Operations that return values to the host, or tensors of a data-dependent size: the host has to
// wait.
constexpr std::array<std::string_view, 11> kMakeTheHostWait = {
    "_local_scalar_dense",   "bincount",           "equal",      "masked_select", "nonzero",
    "repeat_interleave",     "unique_consecutive", "unique_dim", "_unique",       "_unique2",
    "unique_dim_consecutive"};

// Operations that select a kernel by the kind of device: they select as for the processor.
constexpr std::array<std::string_view, 3> kChooseByDevice = {"convolution", "convolution_backward",
                                                             "_convolution"};

// Implemented in far_factories.cc.
constexpr std::array<std::string_view, 4> kOwn = {"empty.memory_format", "empty_strided",
                                                  "set_.source_Storage",
                                                  "set_.source_Storage_storage_offset"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view short_name(const c10::OperatorHandle& op) {
  return std::string_view(op.operator_name().name).substr(kNamespace.size());
}

Use use_of(const c10::Argument& argument) {
  const c10::AliasInfo* const alias = argument.alias_info();
  if (alias == nullptr) return Use::kReads;
  // An operation that may return a view of an argument reads only its shape.
  return alias->isWrite() ? Use::kWrites : Use::kShape;
}

// Any value with its tensors replaced.
template <class Replace>
c10::IValue replaced(const c10::IValue& value, const Replace& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(replace(tensor));
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<Optional<at::Tensor>> tensors;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      tensors.push_back(tensor.has_value() ? Optional<at::Tensor>(replace(*tensor)) : tensor);
    }
    return tensors;
  }
  return value;
}

bool is_mask(const c10::IValue& value) {
  if (!value.isOptionalTensorList()) return false;
  const auto tensors = value.toOptionalTensorVector();
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.has_value() && tensor->defined() &&
           (tensor->scalar_type() == at::kBool || tensor->scalar_type() == at::kByte);
  });
}

// Replaces the operation's arguments, the last on the stack, by host views. Returns whether the
// host must wait for one.
bool give_to_host(const c10::OperatorHandle& op, torch::jit::Stack& stack, HostViews& views) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack.size() - arguments.size();
  bool waits = is_among(kMakeTheHostWait, short_name(op));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = stack[first + i];
    waits = waits || is_mask(value);
    if (value.isDevice()) {
      if (value.toDevice().type() != c10::DeviceType::PrivateUse1) continue;
      views.set_device(device_index(value.toDevice()));
      value = c10::Device(c10::kCPU);
      continue;
    }
    const Use use = use_of(arguments[i]);
    value = replaced(value, [&](const at::Tensor& tensor) { return views.of(tensor, use); });
  }
  return waits;
}

void compute_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const char* const name = op.operator_name().name.c_str();
  HostViews views(name);
  const bool waits = give_to_host(op, *stack, views);
  const bool computes = !views.touches().empty();
  if (computes) FarState::get().begin(views.stream(), name, views.touches());
  if (computes && waits) FarState::get().wait_for(views.stream());
  call_on_processor(op, stack);
  views.carry_changes_back();
  const std::size_t results = op.schema().returns().size();
  for (std::size_t i = stack->size() - results; i < stack->size(); ++i) {
    (*stack)[i] =
        replaced((*stack)[i], [&](const at::Tensor& tensor) { return views.back(tensor); });
  }
}

bool is_for_the_processor(const c10::OperatorHandle& op) {
  if (is_among(kChooseByDevice, short_name(op))) return true;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (std::string_view(name.name).substr(0, kNamespace.size()) != kNamespace) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value() || !is_for_the_processor(*op)) continue;
    std::string full = name.name.substr(kNamespace.size());
    if (!name.overload_name.empty()) full += "." + name.overload_name;
    if (is_among(kOwn, full)) continue;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
  }
}

}  // namespace
}  // namespace motley::far
