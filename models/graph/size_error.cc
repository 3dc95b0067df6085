#include "models/graph/size_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/jit_type.h>

#include "models/package/limits.h"

namespace motley {
namespace {

// The names of arguments that are sizes of results.
constexpr std::array<std::string_view, 10> kSizes = {
    "size",    "sizes",       "self_size", "input_sizes", "input_size",
    "repeats", "num_weights", "steps",     "n",           "m"};
// And of those that are divided by.
constexpr std::array<std::string_view, 9> kDivisors = {
    "groups", "group", "stride", "dilation", "kernel_size", "N", "C", "HxW", "upscale_factor"};

bool is_among(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_size(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    // -1 stands for what is found out from the others.
    if (size < -1 || (size > 0 && size > kTensorCountMax / count)) return false;
    count *= std::max<std::int64_t>(size, 1);
  }
  return true;
}

}  // namespace

std::string size_error(const NodeArguments& arguments, const c10::FunctionSchema& schema) {
  for (std::size_t place = 0; place < arguments.stack.size(); ++place) {
    const std::string& name = schema.arguments()[place].name();
    const c10::IValue& value = arguments.stack[place];
    std::vector<std::int64_t> numbers;
    if (value.isIntList()) numbers = value.toIntVector();
    if (value.isInt()) numbers = {value.toInt()};
    if (is_among(kSizes, name) && !is_size(numbers)) {
      return fmt::format("{} asks for more than {} elements", name, kTensorCountMax);
    }
    const bool has_zero =
        std::ranges::any_of(numbers, [](std::int64_t number) { return number < 1; });
    if (has_zero && is_among(kDivisors, name)) return name + " is less than 1";
  }
  return "";
}

}  // namespace motley
