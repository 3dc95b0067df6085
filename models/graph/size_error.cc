#include "models/graph/size_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/jit_type.h>

#include "models/package/package_limits.h"

namespace motley {
namespace {

// Names of arguments that are sizes of results.
constexpr std::array<std::string_view, 10> kSizeArguments = {
    "size",    "sizes",       "self_size", "input_sizes", "input_size",
    "repeats", "num_weights", "steps",     "n",           "m"};
// Names of arguments that kernels divide by.
constexpr std::array<std::string_view, 9> kDivisorArguments = {
    "groups", "group", "stride", "dilation", "kernel_size", "N", "C", "HxW", "upscale_factor"};

bool is_among(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_valid_size(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    // -1: inferred from the other dimensions.
    if (size < -1 || (size > 0 && size > kTensorCountMax / count)) return false;
    count *= std::max<std::int64_t>(size, 1);
  }
  return true;
}

}  // namespace

std::string size_error(const NodeArguments& arguments, const c10::FunctionSchema& schema) {
  for (std::size_t i = 0; i < arguments.stack.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    const c10::IValue& value = arguments.stack[i];
    std::vector<std::int64_t> values;
    if (value.isIntList()) values = value.toIntVector();
    if (value.isInt()) values = {value.toInt()};
    if (is_among(kSizeArguments, name) && !is_valid_size(values)) {
      return fmt::format("{} asks for more than {} elements", name, kTensorCountMax);
    }
    const bool is_below_1 = std::ranges::any_of(values, [](std::int64_t v) { return v < 1; });
    if (is_below_1 && is_among(kDivisorArguments, name)) return name + " is less than 1";
  }
  return "";
}

}  // namespace motley
