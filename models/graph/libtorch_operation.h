// Lookup of LibTorch operations by the names that packages use.
#pragma once

#include <string>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>

namespace motley {

// `operation`: "aten::add.Tensor"; nullopt if this LibTorch does not have it.
[[nodiscard]] inline c10::optional<c10::OperatorHandle> find_in_libtorch(
    std::string_view operation) {
  const std::size_t dot = operation.find('.');
  const std::string name(operation.substr(0, dot));
  const std::string overload(dot == operation.npos ? "" : operation.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchema({name, overload});
}

}  // namespace motley
