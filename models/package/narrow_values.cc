// Whether graphs convert constants of narrow types before they compute with them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <variant>

#include "models/package/graph_reader.h"

namespace motley {
namespace {

constexpr std::string_view kOfNarrow[] = {
#include "models/package/narrow_operation_list.inc"
};

static_assert(std::is_sorted(std::begin(kOfNarrow), std::end(kOfNarrow)),
              "python/motley/narrow_operations.txt is not sorted");

bool takes_narrow(std::string_view operation) {
  return std::binary_search(std::begin(kOfNarrow), std::end(kOfNarrow), operation);
}

// Types of arguments are never narrow.
bool converts(const Node& node) {
  return node.operation == "aten::_to_copy" &&
         std::ranges::any_of(node.kwargs, [](const auto& kwarg) {
           return kwarg.first == "dtype" && std::holds_alternative<Dtype>(kwarg.second);
         });
}

class NarrowValues {
 public:
  NarrowValues(const Graph& graph, const std::vector<bool>& narrow)
      : is_narrow_(static_cast<std::size_t>(graph.values)) {
    for (std::size_t k = 0; k < graph.takes.size(); ++k) {
      const auto& [role, index] = graph.takes[k];
      const auto place = static_cast<std::size_t>(index);
      is_narrow_[k] = role == Role::kConstant && place < narrow.size() && narrow[place];
    }
  }

  [[nodiscard]] std::string fault(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (!is_taken_by(node) || converts(node)) continue;
      if (!takes_narrow(node.operation)) {
        return fmt::format(
            "{} computes with a constant of a narrow type, which aten::_to_copy "
            "should convert before",
            node.operation);
      }
      for (int r = 0; r < node.results; ++r) is_narrow_[at(node.first_result) + at({r})] = true;
    }
    for (const auto& [role, value] : graph.gives) {
      if (is_narrow_[at(value)]) {
        return fmt::format("{}:{} is of a narrow type", role_name(role.role), role.index);
      }
    }
    return "";
  }

 private:
  static std::size_t at(ValueId value) { return static_cast<std::size_t>(value.index); }

  [[nodiscard]] bool is_taken_by(const Node& node) const {
    const auto is_taken = [&](const Argument& argument) {
      if (const auto* const value = std::get_if<ValueId>(&argument)) return holds(*value);
      const auto* const values = std::get_if<std::vector<std::optional<ValueId>>>(&argument);
      return values != nullptr && std::ranges::any_of(*values, [&](const auto& value) {
               return value && holds(*value);
             });
    };
    return std::ranges::any_of(node.args, is_taken) ||
           std::ranges::any_of(node.kwargs,
                               [&](const auto& kwarg) { return is_taken(kwarg.second); });
  }

  [[nodiscard]] bool holds(ValueId value) const { return is_narrow_[at(value)]; }

  std::vector<bool> is_narrow_;  // [value]
};

}  // namespace

std::string narrow_fault(const LayerGraph& graph, const std::vector<bool>& narrow) {
  std::vector<const Graph*> parts = {&graph.forward, &graph.input_part, &graph.weight_part,
                                     &graph.evaluate};
  if (graph.score) parts.push_back(&*graph.score);
  for (const Graph* const part : parts) {
    std::string fault = NarrowValues(*part, narrow).fault(*part);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace motley
