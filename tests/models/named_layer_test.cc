// The layers of a model with inputs by name, compared with eager PyTorch, whose values
// tests/python/make_packages.py has stored; on the tested device.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/graph/reference_check.h"
#include "models/layers/boundary_layout.h"
#include "models/spec/package_family.h"
#include "package_chain.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

constexpr double kTolerance = 1e-5;  // relative to the largest value of a tensor; docs/numerics.md

std::string path_of(const std::string& name) {
  return std::string(MOTLEY_PACKAGES_DIR) + "/" + name;
}

class NamedLayers : public ::testing::Test {
 protected:
  NamedLayers()
      : chain_(must(read_package(path_of("encoder-tiny.motley"))), tested_device().torch()),
        reference_(must(SafetensorsFile::open(path_of("encoder-tiny.reference.safetensors")))),
        targets_(read("target")) {}

  [[nodiscard]] at::Tensor read(const std::string& name) const {
    return read_tensor(reference_, name);
  }

  // Samples [first, first + count) as the first layer takes them.
  [[nodiscard]] at::Tensor packed(std::int64_t first, std::int64_t count) const {
    std::vector<at::Tensor> tensors;
    for (const SampleInput& input : chain_.package().inputs) {
      tensors.push_back(read("input/" + input.name).narrow(0, first, count).contiguous());
    }
    return pack_boundary(tensors, chain_.package().inputs_of(0));
  }

  c10::InferenceMode guard_;
  PackageChain chain_;
  SafetensorsFile reference_;
  at::Tensor targets_;
};

TEST_F(NamedLayers, HavePyTorchsLossAndGradients) {
  ASSERT_EQ(chain_.package().inputs.size(), 3U);
  EXPECT_EQ(chain_.package().inputs[1].tensor.type, Dtype::kBool);
  const PackageStep step = chain_.step(packed(0, targets_.size(0)), targets_, {});
  const double loss = read("loss").item().toDouble();
  EXPECT_NEAR(step.loss, loss, kTolerance * std::abs(loss));
  double largest = 0;
  for (const auto& [name, gradient] : chain_.by_name(step)) {
    largest = std::max(largest, read("grad/" + name).abs().max().item().toDouble());
  }
  EXPECT_GT(largest, 0);
  for (const auto& [name, gradient] : chain_.by_name(step)) {
    const double apart = (gradient - read("grad/" + name)).abs().max().item().toDouble();
    EXPECT_LE(apart, kTolerance * largest) << name;
  }
}

TEST_F(NamedLayers, EvaluateAndScoreAsPyTorch) {
  const at::Tensor input = packed(0, targets_.size(0));
  const auto outcome = chain_.forward(input, targets_, {.training = false});
  const double expected = read("evaluated_loss").item().toDouble();
  EXPECT_NEAR(outcome.loss_sum, expected, kTolerance * std::abs(expected));
  const at::Tensor score = read("score");
  EXPECT_LE((chain_.scores_at(input, 0) - score).abs().max().item().toDouble(),
            kTolerance * score.abs().max().item().toDouble());
}

TEST_F(NamedLayers, TakeMicroBatchesOfAnySize) {
  double loss = 0;
  for (std::int64_t b = 0; b < targets_.size(0); ++b) {
    const at::Tensor target = targets_.narrow(0, b, 1).contiguous();
    loss += chain_.forward(packed(b, 1), target, {.training = false}).loss_sum;
  }
  const double expected = read("evaluated_loss").item().toDouble();
  EXPECT_NEAR(loss, expected, kTolerance * std::abs(expected));
}

TEST_F(NamedLayers, SplitAndRecomputedBackwardsHaveTheBitsOfTheWhole) {
  const at::Tensor input = packed(0, targets_.size(0));
  const MicroContext micro{.seed = 3, .step = 5, .micro = 2};
  const PackageStep whole = chain_.step(input, targets_, micro);
  EXPECT_TRUE(whole.same_bits(chain_.step(input, targets_, micro, PackageChain::Way::kSplit)));
  EXPECT_TRUE(whole.same_bits(chain_.step(input, targets_, micro, PackageChain::Way::kRecompute)));
}

TEST_F(NamedLayers, ComputeTheirReferences) {
  const auto package = must(read_package(path_of("encoder-tiny.motley")));
  const auto references = must(read_references(*package));
  ASSERT_TRUE(references);
  for (std::size_t l = 0; l < package->layers.size(); ++l) {
    EXPECT_NE(references->find(*package, static_cast<int>(l)), nullptr) << l;
  }
  for (const LayerReference& reference : references->layers) {
    const auto checked = check_against_reference(package, reference, tested_device().torch());
    EXPECT_TRUE(checked.ok()) << describe(checked.error());
  }
}

TEST_F(NamedLayers, AreNotThoseOfALanguageModel) {
  ModelConfig config;
  config.path = path_of("encoder-tiny.motley");
  const ModelSpec model = must(describe_package(config));
  EXPECT_FALSE(model.sample.is_next_token);
  EXPECT_EQ(model.sample.inputs, chain_.package().inputs);
  EXPECT_EQ(model.sample.input_count(), 3 * 6);
}

}  // namespace
}  // namespace motley::testing
