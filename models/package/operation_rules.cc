#include "models/package/operation_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/package/draws.h"
#include "models/package/operations.h"

namespace motley {
namespace {

// Arguments that the worker sets itself.
constexpr std::array<std::string_view, 5> kNeverWritten = {"device", "layout", "pin_memory",
                                                           "non_blocking", "generator"};

// The argument at this position of the schema, by position or by name; nullptr if it is left out.
const Argument* find_argument(const Node& node, std::size_t place, std::string_view name) {
  if (place < node.args.size()) return &node.args[place];
  const auto found =
      std::ranges::find(node.kwargs, name, [](const auto& kwarg) { return kwarg.first; });
  return found == node.kwargs.end() ? nullptr : &found->second;
}

bool is_none(const Argument* argument) {
  return argument == nullptr || std::holds_alternative<std::monostate>(*argument);
}

bool is_false(const Argument* argument) {
  const bool* const truth = argument == nullptr ? nullptr : std::get_if<bool>(argument);
  return truth != nullptr && !*truth;
}

std::string dropout_fault(const Node& node) {
  constexpr const char* kFault =
      "it has a tensor, a probability and a place from 0 to 255, and returns one value";
  if (node.args.size() != 3 || !node.kwargs.empty() || node.results != 1) return kFault;
  if (!std::holds_alternative<ValueId>(node.args[0])) return kFault;
  const auto* const whole_p = std::get_if<std::int64_t>(&node.args[1]);
  const auto* const real_p = std::get_if<double>(&node.args[1]);
  const double p = whole_p != nullptr  ? static_cast<double>(*whole_p)
                   : real_p != nullptr ? *real_p
                                       : -1;
  const auto* const place = std::get_if<std::int64_t>(&node.args[2]);
  if (!(p >= 0 && p <= 1) || place == nullptr || *place < 0 || *place >= kDrawPlaces) {
    return kFault;
  }
  return "";
}

bool has_both(const Node& node,
              std::pair<std::size_t, std::string_view> first,
              std::pair<std::size_t, std::string_view> second) {
  return !is_none(find_argument(node, first.first, first.second)) &&
         !is_none(find_argument(node, second.first, second.second));
}

// In training its kernel updates the running statistics, contrary to its schema; otherwise it reads
// them without checking that they exist. The backward does the same with those of its forward.
std::string batch_norm_fault(const Node& node) {
  constexpr std::size_t kMean = 3;
  constexpr std::size_t kVariance = 4;
  constexpr std::size_t kTraining = 5;
  if (is_false(find_argument(node, kTraining, "training"))) {
    return has_both(node, {kMean, "running_mean"}, {kVariance, "running_var"})
               ? ""
               : "outside training it needs running statistics";
  }
  const bool has_none = is_none(find_argument(node, kMean, "running_mean")) &&
                        is_none(find_argument(node, kVariance, "running_var"));
  return has_none ? ""
                  : "it would write to its running statistics, which is not allowed in training";
}

std::string batch_norm_backward_fault(const Node& node) {
  constexpr std::size_t kTraining = 7;
  const bool in_training = !is_false(find_argument(node, kTraining, "train"));
  const bool whole = in_training ? has_both(node, {5, "save_mean"}, {6, "save_invstd"})
                                 : has_both(node, {3, "running_mean"}, {4, "running_var"});
  return whole ? "" : "its statistics are missing";
}

}  // namespace

std::string broken_rule(const Node& node) {
  for (const auto& [name, argument] : node.kwargs) {
    if (std::ranges::find(kNeverWritten, name) != kNeverWritten.end()) {
      return "'" + name + "' is set by the worker";
    }
  }
  if (node.operation == kDropoutMask) return dropout_fault(node);
  if (draw_kind(node.operation)) return draw_fault(node);
  if (node.operation == "aten::native_batch_norm") return batch_norm_fault(node);
  if (node.operation == "aten::native_batch_norm_backward") return batch_norm_backward_fault(node);
  if (node.operation == "aten::embedding_dense_backward" &&
      !is_false(find_argument(node, 4, "scale_grad_by_freq"))) {
    return "scale_grad_by_freq must be false: its kernel does not check its indices";
  }
  return "";
}

}  // namespace motley
