#include "models/spec/hidden_matrices.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "models/package/package.h"

namespace motley {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  return TensorSpec{Dtype::kFloat32, shape}.count();
}

// The first dimension times the others; nullopt if that is no more than a vector.
std::optional<MatrixShape> flattened(const std::vector<std::int64_t>& shape) {
  if (shape.size() < 2 || shape[0] < 2 || count_of(shape) < 2 * shape[0]) return std::nullopt;
  return MatrixShape{shape[0], count_of(shape) / shape[0]};
}

bool is_product(std::string_view operation) {
  constexpr std::array<std::string_view, 4> kProducts = {"aten::mm", "aten::addmm", "aten::bmm",
                                                         "aten::baddbmm"};
  return std::ranges::find(kProducts, operation) != kProducts.end();
}

bool is_convolution(std::string_view operation) {
  return operation == "aten::convolution" || operation == "aten::_convolution";
}

// Operations whose results show the values of their first argument.
bool is_view(std::string_view operation) {
  constexpr std::array<std::string_view, 18> kViews = {"aten::t",
                                                       "aten::transpose.int",
                                                       "aten::permute",
                                                       "aten::view",
                                                       "aten::reshape",
                                                       "aten::_unsafe_view",
                                                       "aten::unsqueeze",
                                                       "aten::squeeze",
                                                       "aten::squeeze.dim",
                                                       "aten::expand",
                                                       "aten::detach",
                                                       "aten::alias",
                                                       "aten::clone",
                                                       "aten::contiguous",
                                                       "aten::_to_copy",
                                                       "aten::slice.Tensor",
                                                       "aten::split.Tensor",
                                                       "aten::split_with_sizes"};
  return std::ranges::find(kViews, operation) != kViews.end();
}

// How a layer's forward uses the values that it takes as weights.
struct WeightUse {
  bool in_products = false;
  bool as_kernel = false;
  bool elsewhere = false;
  std::size_t last_node = 0;
};

// Of the values that a node reads, those that show a weight: [position] index in `takes`.
class WeightUses {
 public:
  explicit WeightUses(const Graph& forward)
      : uses_(forward.takes.size()), shown_(static_cast<std::size_t>(forward.values), kNone) {
    for (std::size_t take = 0; take < forward.takes.size(); ++take) {
      const Role role = forward.takes[take].role;
      if (role == Role::kParameter || role == Role::kConstant) shown_[take] = take;
    }
    for (std::size_t n = 0; n < forward.nodes.size(); ++n) follow(forward.nodes[n], n);
  }

  [[nodiscard]] const WeightUse& of(std::size_t take) const { return uses_[take]; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void follow(const Node& node, std::size_t number) {
    for (std::size_t a = 0; a < node.args.size(); ++a) read(node, node.args[a], a, number);
    for (const auto& [name, argument] : node.kwargs) read(node, argument, kNone, number);
  }

  void read(const Node& node, const Argument& argument, std::size_t position, std::size_t number) {
    if (const auto* const value = std::get_if<ValueId>(&argument)) {
      read(node, *value, position, number);
    } else if (const auto* const list =
                   std::get_if<std::vector<std::optional<ValueId>>>(&argument)) {
      for (const auto& item : *list) {
        if (item) read(node, *item, kNone, number);
      }
    }
  }

  void read(const Node& node, ValueId value, std::size_t position, std::size_t number) {
    const std::size_t take = shown_[static_cast<std::size_t>(value.index)];
    if (take == kNone) return;
    if (position == 0 && is_view(node.operation)) {
      for (int r = 0; r < node.results; ++r) {
        shown_[static_cast<std::size_t>(node.first_result.index + r)] = take;
      }
      return;
    }
    WeightUse& use = uses_[take];
    use.last_node = number;
    // The first operand of addmm and baddbmm is added to the product.
    const bool is_added = position == 0 && node.operation.find("add") != std::string_view::npos;
    if (is_product(node.operation) && position <= 2 && !is_added) {
      use.in_products = true;
    } else if (is_convolution(node.operation) && position == 1) {
      use.as_kernel = true;
    } else {
      use.elsewhere = true;
    }
  }

  std::vector<WeightUse> uses_;     // [take]
  std::vector<std::size_t> shown_;  // [value] the weight that it shows
};

// The take that is the operand of the last product of the last layer.
std::optional<std::size_t> head_of(const Graph& forward, const WeightUses& uses) {
  std::optional<std::size_t> head;
  for (std::size_t take = 0; take < forward.takes.size(); ++take) {
    const WeightUse& use = uses.of(take);
    if (!use.in_products && !use.as_kernel) continue;
    if (!head || uses.of(*head).last_node < use.last_node) head = take;
  }
  return head;
}

void add_of_package(const Package& package, std::map<std::string, MatrixShape>& matrices) {
  for (std::size_t l = 0; l < package.layers.size(); ++l) {
    const PackageLayer& layer = package.layers[l];
    const Graph& forward = package.graphs[static_cast<std::size_t>(layer.graph)].forward;
    const WeightUses uses(forward);
    const bool is_last = l + 1 == package.layers.size();
    const auto head = is_last ? head_of(forward, uses) : std::nullopt;
    for (std::size_t take = 0; take < forward.takes.size(); ++take) {
      if (forward.takes[take].role != Role::kParameter || take == head) continue;
      const PackageParameter& parameter =
          layer.parameters[static_cast<std::size_t>(forward.takes[take].index)];
      const WeightUse& use = uses.of(take);
      const bool is_matrix = use.in_products && !use.as_kernel && parameter.shape.size() == 2;
      const bool is_kernel = use.as_kernel && !use.in_products;
      if (use.elsewhere || (!is_matrix && !is_kernel)) continue;
      const bool has_classes =
          is_last && package.target_limit > 0 &&
          std::ranges::find(parameter.shape, package.target_limit) != parameter.shape.end();
      const auto shape = flattened(parameter.shape);
      if (shape && !has_classes) matrices[parameter.name] = *shape;
    }
  }
}

void add_of_native(const ModelSpec& model, std::map<std::string, MatrixShape>& matrices) {
  for (const LayerSpec& layer : model.layers) {
    if (layer.kind.ends_with(".embed") || layer.kind.ends_with(".head")) continue;
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.name.find("embedding") != std::string::npos) continue;
      if (const auto shape = flattened(parameter.shape)) matrices[parameter.name] = *shape;
    }
  }
}

}  // namespace

std::map<std::string, MatrixShape> hidden_matrices(const ModelSpec& model) {
  std::map<std::string, MatrixShape> matrices;
  if (model.package != nullptr) {
    add_of_package(*model.package, matrices);
  } else {
    add_of_native(model, matrices);
  }
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.tied_use) matrices.erase(parameter.name);
    }
  }
  return matrices;
}

}  // namespace motley
