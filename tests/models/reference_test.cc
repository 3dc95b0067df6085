// Layers of exported models compared with their references, on the tested device; errors planted
// in graphs and kernels are detected and named.
#include <fmt/format.h>

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/library.h>

#include "graph_mutations.h"
#include "models/graph/reference_check.h"
#include "package_chain.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string package_path(const std::string& name) {
  return std::string(MOTLEY_PACKAGES_DIR) + "/" + name + ".motley";
}

class Reference : public ::testing::TestWithParam<std::string> {
 protected:
  Reference() : package_(must(read_package(package_path(GetParam())))) {
    auto found = must(read_references(*package_));
    if (found) references_ = std::move(*found);
  }

  // The result of the check of a layer with an error in one of its graphs; nullopt if `mistake`
  // returns false because the error cannot be made there.
  [[nodiscard]] std::optional<Result<void>> check_with(
      const LayerReference& reference,
      std::size_t part,
      const std::function<bool(Graph&)>& mistake) const {
    auto changed = std::make_shared<Package>(*package_);
    if (!mistake(*parts_of(*changed, reference.layer)[part])) return std::nullopt;
    return check_against_reference(changed, reference, tested_device().torch());
  }

  [[nodiscard]] const Graph& part_of(const LayerReference& reference, std::size_t part) const {
    return *parts_of(const_cast<Package&>(*package_), reference.layer)[part];  // NOLINT: only read
  }

  std::shared_ptr<const Package> package_;
  PackageReferences references_;
};

TEST_P(Reference, IsThereForEachLayer) {
  for (std::size_t l = 0; l < package_->layers.size(); ++l) {
    EXPECT_NE(references_.find(*package_, static_cast<int>(l)), nullptr) << l;
  }
}

// The deviations of correct kernels are far below the limit.
TEST_P(Reference, IsWhatTheLayerComputes) {
  for (const LayerReference& reference : references_.layers) {
    const auto results = must(compare_with_reference(package_, reference, tested_device().torch()));
    for (const ComparedResult& result : results) {
      EXPECT_LE(result.deviation, result.allowed / 4)
          << reference.layer << " " << role_name(result.role.role) << result.role.index;
    }
    EXPECT_TRUE(check_against_reference(package_, reference, tested_device().torch()).ok());
  }
}

TEST_P(Reference, AllowsForProductsInBf16) {
  for (const LayerReference& reference : references_.layers) {
    const auto checked = check_against_reference(package_, reference, c10::kCPU, at::kBFloat16);
    EXPECT_TRUE(checked.ok()) << describe(checked.error());
  }
}

// Doubles the result of each operation of the backward graphs in turn.
TEST_P(Reference, FindsAScaledGradientInAnyOperation) {
  std::vector<std::string> missed;
  int planted = 0;
  for (const LayerReference& reference : references_.layers) {
    for (const std::size_t part : {1U, 2U}) {
      for (std::size_t n = 0; n < part_of(reference, part).nodes.size(); ++n) {
        const auto checked = check_with(reference, part, [n](Graph& graph) {
          scale_result(graph, n, 2);
          return true;
        });
        ++planted;
        // An operation whose result cannot be multiplied ends in an error, too.
        if (!checked->ok()) continue;
        missed.push_back(fmt::format("layer {}, part {}, node {}, {}", reference.layer, part, n,
                                     part_of(reference, part).nodes[n].operation));
      }
    }
  }
  EXPECT_GT(planted, 0);
  EXPECT_THAT(missed, ::testing::IsEmpty());
}

// Factors, transposed weights and other operations that can be replaced by their first argument.
// Not in the evaluation graph: only its outputs are compared, and in a fresh model attention
// scores hardly affect them.
TEST_P(Reference, FindsADroppedOperation) {
  std::vector<std::string> missed;
  for (const LayerReference& reference : references_.layers) {
    for (const std::size_t part : {0U, 1U, 2U}) {
      for (std::size_t n = 0; n < part_of(reference, part).nodes.size(); ++n) {
        const std::string operation(part_of(reference, part).nodes[n].operation);
        if (operation != "aten::mul.Tensor" && operation != "aten::div.Tensor" &&
            operation != "aten::t" && operation != "aten::transpose.int") {
          continue;
        }
        const auto checked =
            check_with(reference, part, [n](Graph& graph) { return drop_node(graph, n); });
        if (checked && checked->ok()) {
          missed.push_back(
              fmt::format("layer {}, part {}, node {}, {}", reference.layer, part, n, operation));
        }
      }
    }
  }
  EXPECT_THAT(missed, ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Packages, Reference, all_packages(), package_test_name);

// A kernel that is correct in fp64, and wrong in fp32.
at::Tensor half_wrong_tanh(const at::Tensor& x) {
  const at::Tensor y = at::tanh(x);
  return x.scalar_type() == at::kFloat ? y * 1.5 : y;
}

TORCH_LIBRARY(motley_test, library) {
  library.def("half_wrong_tanh(Tensor x) -> Tensor", &half_wrong_tanh);
}

struct Mlp {
  std::shared_ptr<Package> package =
      std::make_shared<Package>(*must(read_package(package_path("mlp"))));
  PackageReferences references = *must(read_references(*package));

  // The first layer with that operation, and the index of its node.
  [[nodiscard]] std::pair<const LayerReference*, std::size_t> find(std::string_view operation) {
    for (const LayerReference& reference : references.layers) {
      const auto& nodes = parts_of(*package, reference.layer)[0]->nodes;
      const auto found = std::ranges::find(nodes, operation, &Node::operation);
      if (found != nodes.end()) return {&reference, found - nodes.begin()};
    }
    throw std::runtime_error("no " + std::string(operation));
  }
};

TEST(ReferenceCheck, NamesAKernelThatComputesOtherwise) {
  Mlp mlp;
  const auto [reference, node] = mlp.find("aten::tanh");
  parts_of(*mlp.package, reference->layer)[0]->nodes[node].operation =
      "motley_test::half_wrong_tanh";
  const auto checked = check_against_reference(mlp.package, *reference, tested_device().torch());
  ASSERT_FALSE(checked.ok());
  const std::string words = describe(checked.error());
  EXPECT_EQ(checked.error().code, ErrorCode::kConfig);
  EXPECT_THAT(
      words, HasSubstr("layer '" +
                       mlp.package->layers[static_cast<std::size_t>(reference->layer)].name + "'"));
  EXPECT_THAT(words, HasSubstr("motley_test::half_wrong_tanh (node"));
  EXPECT_THAT(words, HasSubstr("0.5 of its norm"));
  EXPECT_THAT(words, HasSubstr("leave this device out"));
}

TEST(ReferenceCheck, NamesTheNodeOfTheFirstWrongResultWhereTheGraphIsWrong) {
  Mlp mlp;
  const auto [reference, node] = mlp.find("aten::tanh");
  Graph& graph = *parts_of(*mlp.package, reference->layer)[0];
  scale_result(graph, node, 3);
  const auto checked = check_against_reference(mlp.package, *reference, tested_device().torch());
  ASSERT_FALSE(checked.ok());
  const std::string words = describe(checked.error());
  EXPECT_THAT(words, AllOf(HasSubstr("output 0 is off by about"), HasSubstr("times its norm")));
  EXPECT_THAT(words, HasSubstr(fmt::format("aten::mul.Tensor (node {} of the forward)", node + 1)));
  EXPECT_THAT(words, HasSubstr("export the model again"));
}

// The references as if the exporter's kernels had made every gradient a little larger.
LayerReference with_gradients_scaled(LayerReference reference, double factor) {
  for (ReferenceTensor& tensor : reference.training) {
    if (tensor.role.role != Role::kParameterGrad && tensor.role.role != Role::kInputGrad) continue;
    TensorDigest& digest = tensor.digest;
    digest.norm *= factor;
    digest.largest *= factor;
    for (double& value : digest.projections) value *= factor;
    for (double& value : digest.samples) value *= factor;
  }
  return reference;
}

TEST(ReferenceCheck, AllowsForWhatTurnsOverWhereEachKernelIsRight) {
  const auto package = must(read_package(package_path("cnn")));
  const PackageReferences references = *must(read_references(*package));
  const auto passes = [&](std::size_t layer, double factor) {
    return check_against_reference(package, with_gradients_scaled(references.layers[layer], factor),
                                   tested_device().torch())
        .ok();
  };
  constexpr std::size_t kConvolution = 0;
  constexpr std::size_t kNormAndRelu = 1;
  ASSERT_TRUE(passes(kConvolution, 1) && passes(kNormAndRelu, 1));
  EXPECT_TRUE(passes(kNormAndRelu, 1.01)) << "a ReLU may have turned over";
  EXPECT_FALSE(passes(kNormAndRelu, 1.05)) << "not so many";
  EXPECT_FALSE(passes(kConvolution, 1.01)) << "nothing turns over there";
}

TEST(ReferenceCheck, CountsItsProgressByOperations) {
  Mlp mlp;
  int nodes = 0;
  const auto checked =
      check_against_reference(mlp.package, mlp.references.layers.front(), tested_device().torch(),
                              at::kFloat, [&] { ++nodes; });
  ASSERT_TRUE(checked.ok());
  std::size_t expected = 0;
  for (const Graph* const part : parts_of(*mlp.package, mlp.references.layers.front().layer)) {
    expected += part->nodes.size();
  }
  EXPECT_EQ(static_cast<std::size_t>(nodes), expected);
}

}  // namespace
}  // namespace motley::testing
