#include "models/graph/reference_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include "models/graph/node_witness.h"
#include "models/graph/reference_run.h"
#include "models/graph/rounded_product.h"
#include "models/graph/turning_points.h"

namespace motley {
namespace {

// Lower bound of a gradient's size, as a share of the layer's largest: the gradient of a bias
// before a batch normalization is 0 except for rounding. Python's motley.reference.LEAST.
constexpr double kLeastGradient = 1e-3;
// The largest deviation that flips at kinks and ties may cause if each kernel by itself is right.
constexpr double kTurnedOver = 0.02;

bool is_gradient(Role role) {
  return role == Role::kInputGrad || role == Role::kParameterGrad;
}

TensorDigest digest_here(const at::Tensor& tensor,
                         const LayerReference& reference,
                         const TensorDigest& right) {
  const at::Tensor host = tensor.to(at::kCPU).to(at::kFloat).contiguous();
  return digest_of({host.data_ptr<float>(), static_cast<std::size_t>(host.numel())}, reference.seed,
                   right.samples.size());
}

void compare(const RoleTensors& found,
             const std::vector<ReferenceTensor>& expected,
             const LayerReference& reference,
             at::ScalarType products,
             bool in_training,
             std::vector<ComparedResult>& results) {
  double largest = 0;
  for (const ReferenceTensor& tensor : expected) {
    if (is_gradient(tensor.role.role)) largest = std::max(largest, tensor.digest.norm);
  }
  for (const ReferenceTensor& tensor : expected) {
    const at::Tensor& here = found.at({tensor.role.role, tensor.role.index});
    const double least = is_gradient(tensor.role.role) ? kLeastGradient * largest : 0;
    const TensorDigest digest = digest_here(here, reference, tensor.digest);
    results.push_back({tensor.role, in_training, deviation(digest, tensor.digest, least),
                       allowed_deviation(tensor, products), digest.norm, tensor.digest.norm});
  }
}

Result<std::vector<ComparedResult>> compare_all(ReferenceRun& run,
                                                const LayerReference& reference,
                                                at::ScalarType products,
                                                const ReferenceRun::Observer& observer) {
  std::vector<ComparedResult> results;
  {
    MOTLEY_ASSIGN(const RoleTensors trained, run.training(observer));
    compare(trained, reference.training, reference, products, true, results);
  }
  MOTLEY_ASSIGN(const RoleTensors evaluated, run.evaluation(observer));
  compare(evaluated, reference.evaluation, reference, products, false, results);
  return results;
}

struct PlacedNode {
  PartName part = PartName::kForward;
  std::size_t index = 0;
  double deviation = 0;
};

// Builds the error of a layer with deviating results.
class Diagnosis {
 public:
  Diagnosis(const Package& package,
            const LayerReference& reference,
            ReferenceRun& run,
            c10::Device device,
            at::ScalarType products)
      : package_(package),
        layer_(package.layers[static_cast<std::size_t>(reference.layer)]),
        reference_(reference),
        run_(run),
        device_(device),
        products_(products) {}

  // Whether rounding in correct kernels explains the deviation: a ReLU at its kink, or a maximum of
  // two nearly equal values. `wrong`: at least one.
  [[nodiscard]] bool is_turned_over(const std::vector<ComparedResult>& wrong) {
    const auto is_small = [](const ComparedResult& r) { return r.deviation <= kTurnedOver; };
    if (!std::ranges::all_of(wrong, is_small)) return false;
    if (!has_turning_points(run_.graph(PartName::kForward))) return false;
    return !first_wrong_node(/*in_training=*/true) && !first_wrong_node(/*in_training=*/false);
  }

  // `wrong`: at least one.
  Error error(const std::vector<ComparedResult>& wrong, std::size_t compared) {
    const auto earlier = [&](const ComparedResult& a, const ComparedResult& b) {
      const PlacedNode x = maker(a);
      const PlacedNode y = maker(b);
      return std::pair(x.part, x.index) < std::pair(y.part, y.index);
    };
    const ComparedResult& first = *std::ranges::min_element(wrong, earlier);
    Error error;
    error.code = ErrorCode::kConfig;
    error.what = fmt::format(
        "layer '{}' computes other values here than where it was exported: {}{} is off by about "
        "{}, of "
        "which rounding explains {:.2g} (norm {:.4g} instead of {:.4g}; {} of {} results are off)",
        excerpt(layer_.name), words(first.role), first.in_training ? "" : " in evaluation",
        size_words(first.deviation), first.allowed, first.norm, first.right_norm, wrong.size(),
        compared);
    if (const auto node = first_wrong_node(first.in_training)) {
      error.cause = fmt::format(
          "{} on {} in LibTorch {} differs from its result with contiguous arguments in double "
          "precision, by {}",
          node_words(*node), device_.str(), TORCH_VERSION, size_words(node->deviation));
      error.remedy = fmt::format(
          "use the LibTorch of the export there ({}), export with the PyTorch of the LibTorch "
          "there, or leave this device out of the cluster file",
          excerpt(package_.made_by));
      return error;
    }
    // The weights' hash is checked only now, since it takes long and is rarely needed.
    if (const auto verified = verify_package(package_); !verified.ok()) return verified.error();
    error.cause = fmt::format(
        "each single operation computes the right result here, including {}, which returned this "
        "one: the package's graphs and its reference.jsonl are from different exports, or PyTorch "
        "computed differently at the export ({})",
        node_words(maker(first)), excerpt(package_.made_by));
    error.remedy =
        "export the model again and copy the whole folder to every machine; if the same layer is "
        "refused again, see docs/failures.md, \"A layer is refused\"";
    return error;
  }

 private:
  static std::string size_words(double deviation) {
    if (!std::isfinite(deviation)) return "values that are not finite";
    return deviation < 2 ? fmt::format("{:.2g} of its norm", deviation)
                         : fmt::format("{:.3g} times its norm", deviation);
  }

  [[nodiscard]] std::string words(RoleIndex role) const {
    const auto index = static_cast<std::size_t>(role.index);
    switch (role.role) {
      case Role::kLoss:
        return "the loss";
      case Role::kCount:
        return "the number of terms of the loss";
      case Role::kObserved:
        return fmt::format("the observed value of '{}'", excerpt(layer_.statistics[index].name));
      case Role::kInputGrad:
        return fmt::format("the gradient of input {}", role.index);
      case Role::kParameterGrad:
        return fmt::format("the gradient of '{}'", excerpt(layer_.parameters[index].name));
      default:
        return fmt::format("output {}", role.index);
    }
  }

  [[nodiscard]] std::string node_words(const PlacedNode& node) const {
    const Graph& graph = run_.graph(node.part);
    if (node.index >= graph.nodes.size()) return fmt::format("the {}", part_words(node.part));
    return fmt::format("{} (node {} of the {})", graph.nodes[node.index].operation, node.index,
                       part_words(node.part));
  }

  // The node that makes a result.
  [[nodiscard]] PlacedNode maker(const ComparedResult& result) const {
    std::vector<PartName> parts = {PartName::kForward, PartName::kInputPart, PartName::kWeightPart};
    if (!result.in_training) parts = {PartName::kEvaluate};
    if (!result.in_training && layer_.outputs.empty()) parts.push_back(PartName::kScore);
    for (const PartName part : parts) {
      const Graph& graph = run_.graph(part);
      const auto value = graph.given(result.role);
      if (!value) continue;
      for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const int first = graph.nodes[n].first_result.index;
        if (first <= value->index && value->index < first + graph.nodes[n].results) {
          return {part, n, 0};
        }
      }
      return {part, graph.nodes.size(), 0};  // it is an input of the graph
    }
    return {};
  }

  [[nodiscard]] double node_tolerance(const Node& node) const {
    if (products_ == at::kFloat || !is_product(node.operation)) return 1e-3;
    return products_ == at::kHalf ? 1e-2 : 5e-2;
  }

  // The first node with results that deviate from its operation's, recomputed from its arguments.
  [[nodiscard]] std::optional<PlacedNode> first_wrong_node(bool in_training) {
    std::optional<PlacedNode> first;
    const auto observer = [&](PartName part, std::size_t index,
                              const std::vector<at::Tensor>& values) {
      if (first) return;
      const Node& node = run_.graph(part).nodes[index];
      const auto apart = node_deviation(node, values, reference_.samples);
      if (apart && !(*apart <= node_tolerance(node))) first = PlacedNode{part, index, *apart};
    };
    const auto ran = in_training ? run_.training(observer) : run_.evaluation(observer);
    return ran.ok() ? first : std::nullopt;
  }

  const Package& package_;
  const PackageLayer& layer_;
  const LayerReference& reference_;
  ReferenceRun& run_;
  c10::Device device_;
  at::ScalarType products_;
};

}  // namespace

double allowed_deviation(const ReferenceTensor& tensor, at::ScalarType products) {
  constexpr double kFp32 = 5e-5;
  constexpr double kMoved = 4;
  const double rounding = kFp32 + kMoved * tensor.moved_fp32;
  if (products == at::kFloat) return rounding;
  // fp16 has three more bits than bf16.
  constexpr double kShort = 3;
  constexpr double kBf16 = 0.02;
  const double rounded = kBf16 + kShort * tensor.moved_bf16;
  return rounding + (products == at::kHalf ? rounded / 4 : rounded);
}

std::int64_t reference_check_bytes(const Package& package, const LayerReference& reference) {
  const auto index = static_cast<std::size_t>(reference.layer);
  const LayerGraph::Memory& memory =
      package.graphs[static_cast<std::size_t>(package.layers[index].graph)].memory;
  std::int64_t bytes = 0;
  for (const PackageParameter& parameter : package.layers[index].parameters) {
    bytes += TensorSpec{Dtype::kFloat32, parameter.shape}.bytes();
  }
  for (const PackageConstant& constant : package.layers[index].constants) {
    bytes += constant.tensor.bytes();
  }
  constexpr std::int64_t kCopies = 3;  // values, gradients, and what is read or compared
  return kCopies * bytes + memory.converted_bytes +
         reference.samples * (memory.saved_bytes + memory.queued_bytes + memory.workspace_bytes);
}

Result<std::vector<ComparedResult>> compare_with_reference(std::shared_ptr<const Package> package,
                                                           const LayerReference& reference,
                                                           c10::Device device,
                                                           at::ScalarType products) {
  const c10::InferenceMode guard;
  MOTLEY_ASSIGN(ReferenceRun run, ReferenceRun::make(package, reference, device, products));
  return compare_all(run, reference, products, {});
}

Result<void> check_against_reference(std::shared_ptr<const Package> package,
                                     const LayerReference& reference,
                                     c10::Device device,
                                     at::ScalarType products,
                                     const std::function<void()>& on_node) {
  const c10::InferenceMode guard;
  MOTLEY_ASSIGN(ReferenceRun run, ReferenceRun::make(package, reference, device, products));
  ReferenceRun::Observer observer;
  if (on_node) observer = [&](PartName, std::size_t, const std::vector<at::Tensor>&) { on_node(); };
  MOTLEY_ASSIGN(std::vector<ComparedResult> results,
                compare_all(run, reference, products, observer));
  const std::size_t compared = results.size();
  std::erase_if(results, [](const ComparedResult& r) { return r.deviation <= r.allowed; });
  if (results.empty()) return {};
  Diagnosis diagnosis(*package, reference, run, device, products);
  if (diagnosis.is_turned_over(results)) return {};
  return diagnosis.error(results, compared);
}

}  // namespace motley
