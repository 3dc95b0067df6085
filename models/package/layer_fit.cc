#include "models/package/layer_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace motley {
namespace {

// One more than the highest index that a part takes in this role.
int taken_below(const Graph& graph, Role role) {
  int below = 0;
  for (const RoleIndex& take : graph.takes) {
    if (take.role == role) below = std::max(below, take.index + 1);
  }
  return below;
}

std::vector<int> taken_indices(const Graph& graph, Role role) {
  std::vector<int> indices;
  for (const RoleIndex& take : graph.takes) {
    if (take.role == role) indices.push_back(take.index);
  }
  return indices;
}

std::vector<int> given_indices(const Graph& graph, Role role) {
  std::vector<int> indices;
  for (const auto& [given, value] : graph.gives) {
    if (given.role == role) indices.push_back(given.index);
  }
  std::ranges::sort(indices);
  return indices;
}

template <class Parts>
int taken_below(const Parts& parts, Role role) {
  int below = 0;
  for (const Graph* part : parts) below = std::max(below, taken_below(*part, role));
  return below;
}

std::string unknown(Role role, int taken, int known) {
  return fmt::format("{}:{} does not exist; there are {}", role_name(role), taken - 1, known);
}

// Checks that each parameter's gradient is made once, by one of the two parts.
std::string gradient_fault(const LayerGraph& graph, int parameters) {
  std::vector<int> made(static_cast<std::size_t>(parameters));
  for (const Graph* part : {&graph.input_part, &graph.weight_part}) {
    for (const auto& [role, value] : part->gives) {
      if (role.role != Role::kParameterGrad) continue;
      const auto index = static_cast<std::size_t>(role.index);
      if (index >= made.size() || ++made[index] > 1) {
        return fmt::format("parameter_grad:{} is given twice, or another is missing", role.index);
      }
    }
  }
  return "";
}

std::string loss_fault(const LayerGraph& graph) {
  for (const Graph* part : {&graph.forward, &graph.evaluate}) {
    for (const Role role : {Role::kLoss, Role::kCount, Role::kCorrect}) {
      const int given = part->count_given(role);
      if (given > 1 || (given == 0 && role != Role::kCorrect)) {
        return fmt::format("{} is given {} times", role_name(role), given);
      }
    }
  }
  if (taken_below(std::vector{&graph.forward, &graph.evaluate}, Role::kTarget) > 1) {
    return "there is only target:0";
  }
  return graph.score->count_given(Role::kOutput) == 1 ? "" : "score does not return one output";
}

std::string handed_over_fault(const LayerGraph& graph) {
  const std::vector<const Graph*> parts = {&graph.input_part, &graph.weight_part};
  const int saved = graph.forward.count_given(Role::kSaved);
  if (const int taken = taken_below(parts, Role::kSaved); taken > saved) {
    return unknown(Role::kSaved, taken, saved);
  }
  const int queued = graph.input_part.count_given(Role::kQueued);
  if (const int taken = taken_below(graph.weight_part, Role::kQueued); taken > queued) {
    return unknown(Role::kQueued, taken, queued);
  }
  return "";
}

// Checks that the inputs with a returned gradient are those whose spec has one.
std::string input_gradient_fault(const std::vector<int>& given,
                                 const std::vector<BoundarySpec>& inputs) {
  std::vector<int> expected;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].gradient) expected.push_back(static_cast<int>(k));
  }
  const auto [missing, extra] = std::ranges::mismatch(expected, given);
  if (missing != expected.end() && (extra == given.end() || *missing < *extra)) {
    return fmt::format("input_grad:{} is missing", *missing);
  }
  if (extra == given.end()) return "";
  return fmt::format("input_grad:{} is returned; no such input has a gradient", *extra);
}

std::string output_gradient_fault(const std::vector<int>& taken,
                                  const std::vector<BoundarySpec>& outputs) {
  for (const int index : taken) {
    if (outputs[static_cast<std::size_t>(index)].gradient) continue;
    return fmt::format("grad:{} does not exist; that output has no gradient", index);
  }
  return "";
}

}  // namespace

RoleCountsOr roles_of(const LayerGraph& graph, bool is_last) {
  std::vector<const Graph*> parts = {&graph.forward, &graph.input_part, &graph.weight_part,
                                     &graph.evaluate};
  if (graph.score) parts.push_back(&*graph.score);
  const RoleCounts roles = {
      .inputs = taken_below(parts, Role::kInput),
      .input_grads = given_indices(graph.input_part, Role::kInputGrad),
      .grads = taken_indices(graph.input_part, Role::kGrad),
      .outputs = graph.forward.count_given(Role::kOutput),
      .parameters = graph.input_part.count_given(Role::kParameterGrad) +
                    graph.weight_part.count_given(Role::kParameterGrad),
      .constants = taken_below(parts, Role::kConstant),
      .statistics = graph.forward.count_given(Role::kObserved),
  };
  const auto with = [&](std::string fault) { return RoleCountsOr{roles, std::move(fault)}; };
  if (std::string fault = handed_over_fault(graph); !fault.empty()) return with(fault);
  if (std::string fault = gradient_fault(graph, roles.parameters); !fault.empty()) {
    return with(fault);
  }
  if (const int taken = taken_below(parts, Role::kParameter); taken > roles.parameters) {
    return with(unknown(Role::kParameter, taken, roles.parameters));
  }
  if (const int taken = taken_below(parts, Role::kStatistic); taken > roles.statistics) {
    return with(unknown(Role::kStatistic, taken, roles.statistics));
  }
  if (const int taken = taken_below(graph.input_part, Role::kGrad); taken > roles.outputs) {
    return with(unknown(Role::kGrad, taken, roles.outputs));
  }
  if (is_last) return with(loss_fault(graph));
  if (graph.evaluate.count_given(Role::kOutput) != roles.outputs) {
    return with("forward and evaluate return different outputs");
  }
  return with("");
}

std::string misfit(const RoleCounts& roles,
                   const PackageLayer& layer,
                   const std::vector<BoundarySpec>& inputs) {
  const auto differs = [](const char* what, std::size_t theirs, int ours) {
    return fmt::format("it has {} {}; its graph has {}", theirs, what, ours);
  };
  const auto count = [](int number) { return static_cast<std::size_t>(number); };
  if (count(roles.inputs) > inputs.size()) return differs("inputs", inputs.size(), roles.inputs);
  if (std::string fault = input_gradient_fault(roles.input_grads, inputs); !fault.empty()) {
    return fault;
  }
  if (count(roles.outputs) != layer.outputs.size()) {
    return differs("outputs", layer.outputs.size(), roles.outputs);
  }
  if (std::string fault = output_gradient_fault(roles.grads, layer.outputs); !fault.empty()) {
    return fault;
  }
  if (count(roles.parameters) != layer.parameters.size()) {
    return differs("parameters", layer.parameters.size(), roles.parameters);
  }
  if (count(roles.statistics) != layer.statistics.size()) {
    return differs("statistics", layer.statistics.size(), roles.statistics);
  }
  if (count(roles.constants) > layer.constants.size()) {
    return differs("constants", layer.constants.size(), roles.constants);
  }
  return "";
}

}  // namespace motley
