#include "models/graph/kernel_layouts.h"

#include <algorithm>
#include <iterator>

namespace motley {
namespace {

// "aten::gelu_backward grad_output": an operation and the names of its arguments.
constexpr std::string_view kContiguousArguments[] = {
#include "models/graph/contiguous_arguments.inc"
};

constexpr std::string_view operation_of(std::string_view line) {
  return line.substr(0, line.find(' '));
}

}  // namespace

std::vector<std::string_view> contiguous_arguments(std::string_view operation) {
  const auto* const line = std::ranges::find(kContiguousArguments, operation, operation_of);
  std::vector<std::string_view> names;
  if (line == std::end(kContiguousArguments)) return names;
  std::string_view rest = *line;
  for (std::size_t space = rest.find(' '); space != rest.npos; space = rest.find(' ')) {
    rest.remove_prefix(space + 1);
    names.push_back(operation_of(rest));
  }
  return names;
}

bool is_view_in_other_sizes(std::string_view operation) {
  return operation == "aten::view" || operation == "aten::_unsafe_view";
}

}  // namespace motley
