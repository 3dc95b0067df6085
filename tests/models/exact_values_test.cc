// The results of a package whose layers pass on integers, truth values and numbers without a
// gradient (make_exact_package.py), with its chain cut at any boundary.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "base/system/files.h"
#include "models/graph/reference_run.h"
#include "models/layers/boundary_layout.h"
#include "models/layers/chain.h"
#include "package_chain.h"
#include "package_changes.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

constexpr const char* kPackage = MOTLEY_PACKAGES_DIR "/exact.motley";
constexpr std::int64_t kPositions = 4;
constexpr std::int64_t kClasses = 5;

at::Tensor some_ids(std::int64_t samples, std::int64_t step) {
  return at::arange(samples * kPositions, at::kLong)
      .mul(step)
      .remainder(kClasses)
      .view({samples, kPositions});
}

at::Tensor rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

// For each id, the sum of its rows of `gradients`.
at::Tensor by_id(const at::Tensor& ids, const at::Tensor& gradients) {
  return at::mm(at::one_hot(ids.flatten(), kClasses).to(at::kFloat).t(), rows(gradients));
}

TEST(ExactValues, AreWhatTheLayersComputeWith) {
  const c10::InferenceMode guard;
  PackageChain chain(must(read_package(kPackage)), tested_device().torch());
  std::vector<at::Tensor> values;
  for (const at::Tensor& value : chain.values()) values.push_back(value.cpu());
  const at::Tensor &embed = values[1], &mix_0 = values[2], &mix_1 = values[3], &weight = values[4],
                   &table = values[5];
  for (const std::int64_t samples : {1, 2, 3, 5}) {
    const at::Tensor ids = some_ids(samples, 3);
    const at::Tensor targets = some_ids(samples, 2);
    const PackageStep step = chain.step(ids, targets, {});
    const at::Tensor factor = ids.to(at::kFloat).mul(0.25).mul(ids.ne(0)).unsqueeze(-1);
    const at::Tensor x = embed.index_select(0, ids.flatten()).view({samples, kPositions, 3});
    const at::Tensor y = at::matmul(x, mix_0).mul(factor);
    const at::Tensor z = at::matmul(y, mix_1).mul(factor);
    const at::Tensor logits = at::mm(rows(z), weight) + table.index_select(0, ids.flatten());
    const at::Tensor log_p = at::log_softmax(logits, 1);
    const at::Tensor right = at::one_hot(targets.flatten(), kClasses).to(at::kFloat);
    EXPECT_NEAR(step.loss, -(log_p * right).sum().item().toDouble(), 1e-4);
    EXPECT_EQ(step.count, samples * kPositions);

    const at::Tensor g = log_p.exp() - right;
    const at::Tensor g_z = at::mm(g, weight.t()).view_as(z).mul(factor);
    const at::Tensor g_y = at::matmul(g_z, mix_1.t()).mul(factor);
    const at::Tensor g_x = at::matmul(g_y, mix_0.t());
    const std::vector<at::Tensor> expected = {at::zeros({2}),
                                              by_id(ids, g_x),
                                              at::mm(rows(x).t(), rows(g_y)),
                                              at::mm(rows(y).t(), rows(g_z)),
                                              at::mm(rows(z).t(), g),
                                              by_id(ids, g)};
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(at::allclose(step.gradients[k], expected[k], 1e-4, 1e-5)) << chain.names()[k];
    }
  }
}

TEST(ExactValues, StayInSplitAndRepeatedBackwards) {
  const c10::InferenceMode guard;
  PackageChain chain(must(read_package(kPackage)), tested_device().torch());
  for (const std::int64_t samples : {1, 3}) {
    const at::Tensor ids = some_ids(samples, 3);
    const at::Tensor targets = some_ids(samples, 2);
    const PackageStep whole = chain.step(ids, targets, {});
    EXPECT_TRUE(whole.same_bits(chain.step(ids, targets, {}, PackageChain::Way::kSplit)));
    EXPECT_TRUE(whole.same_bits(chain.step(ids, targets, {}, PackageChain::Way::kRecompute)));
  }
}

// The changes include types, shapes and gradients of boundaries. A changed package is refused,
// runs, or ends in an error of a graph.
TEST(ExactValues, WithRandomChangesRunOrSayWhyNot) {
  const c10::InferenceMode guard;
  const auto right = must(read_package(kPackage));
  PackageChanges changes(must(read_file(right->folder / kPackageFileName)));
  int ran = 0;
  int refused = 0;
  for (int change = 0; change < 1000; ++change) {
    auto package = parse_package(changes.next(), "package.json");
    if (!package.ok() || package->inputs != right->inputs || package->target != right->target) {
      continue;
    }
    package->folder = right->folder;
    try {
      PackageChain chain(std::make_shared<const Package>(*std::move(package)),
                         tested_device().torch());
      static_cast<void>(chain.step(some_ids(3, 3), some_ids(3, 2), {}));
      ++ran;
    } catch (const std::runtime_error& said) {  // GraphFailure is one; LibTorch's errors are not
      EXPECT_NE(std::string(said.what()), "");
      ++refused;
    }
  }
  EXPECT_GT(ran, 0);
  EXPECT_GT(refused, 0);
}

// The comparison with a reference uses inputs of each type, and gradients of the outputs that have
// one.
TEST(ExactValues, AreInputsOfAReference) {
  const c10::InferenceMode guard;
  constexpr int kMix = 2;
  LayerReference reference;
  reference.layer = kMix;
  reference.seed = 5;
  reference.samples = 2;
  reference.inputs = {{{kPositions, ListedValues{{0, 1}}}},
                      {{kPositions * 3, UniformValues{-1, 2}}},
                      {{kPositions, IntegersBelow{kClasses}}},
                      {{kPositions, ListedValues{{0.5, 0.25}}}}};
  ReferenceRun run = must(ReferenceRun::make(must(read_package(kPackage)), reference,
                                             tested_device().torch(), at::kFloat));
  const RoleTensors trained = must(run.training());
  const at::Tensor mask = trained.at({Role::kOutput, 0}).cpu();
  EXPECT_EQ(mask.scalar_type(), at::kBool);
  EXPECT_EQ(trained.at({Role::kOutput, 2}).scalar_type(), at::kLong);
  EXPECT_FALSE(trained.contains({Role::kInputGrad, 0}));
  const at::Tensor gradient = trained.at({Role::kInputGrad, 1}).cpu();
  EXPECT_GT(gradient.abs().sum().item().toDouble(), 0);
  EXPECT_EQ(gradient.abs().sum(-1).mul(mask.logical_not()).sum().item().toDouble(), 0);
  const RoleTensors evaluated = must(run.evaluation());
  EXPECT_TRUE(
      at::equal(evaluated.at({Role::kOutput, 1}).cpu(), trained.at({Role::kOutput, 1}).cpu()));
}

ModelConfig package_config() {
  ModelConfig config;
  config.kind = "package";
  config.path = kPackage;
  return config;
}

// The result of a step of consecutive chains.
struct ChainStep {
  double loss = 0;
  std::vector<at::Tensor> gradients;
};

ChainStep step_of(const std::vector<int>& ends, bool recompute, bool split) {
  constexpr std::int64_t kSamples = 3;
  const ModelConfig config = package_config();
  const ModelSpec model = must(describe_model(config));
  const c10::Device device = tested_device().torch();
  std::vector<std::unique_ptr<LayerChain>> chains;
  for (const int end : ends) {
    const int first = chains.empty() ? 0 : ends[chains.size() - 1];
    chains.push_back(std::make_unique<LayerChain>(
        config, model, first, end, ChainOptions{.recompute = recompute, .device = device}));
    chains.back()->initialize(7);
    chains.back()->begin(1);
  }
  const MicroContext micro;
  at::Tensor x = some_ids(kSamples, 3).to(device);
  for (std::size_t c = 0; c + 1 < chains.size(); ++c) {
    x = chains[c]->forward(std::move(x), micro);
    const BoundaryLayout layout =
        activation_layout(model.layers[static_cast<std::size_t>(ends[c]) - 1], kSamples);
    EXPECT_EQ(x.sizes(), at::IntArrayRef(layout.sizes));
    x = x.clone();  // as on another rank
  }
  ChainStep step;
  step.loss =
      chains.back()->forward_loss(std::move(x), some_ids(kSamples, 2).to(device), micro).loss_sum;
  at::Tensor grad =
      split ? chains.back()->backward_loss_input(micro) : chains.back()->backward_loss(micro);
  for (std::size_t c = chains.size() - 1; c-- > 0;) {
    const LayerSpec& layer = model.layers[static_cast<std::size_t>(ends[c]) - 1];
    EXPECT_EQ(grad.numel(), layer.boundary(kSamples).floats);
    grad = split ? chains[c]->backward_input(std::move(grad), micro)
                 : chains[c]->backward(std::move(grad), micro);
  }
  for (const auto& chain : chains) {
    if (split) chain->backward_weight(micro.micro);
    for (const LayerChain::Parameter& parameter : chain->parameters()) {
      step.gradients.push_back(parameter.gradient_tensor.cpu().clone());
    }
  }
  return step;
}

TEST(ExactValues, CrossWhereverTheChainIsCut) {
  const c10::InferenceMode guard;
  const ChainStep whole = step_of({5}, /*recompute=*/false, /*split=*/false);
  EXPECT_GT(whole.gradients.back().abs().sum().item().toDouble(), 0);
  for (const std::vector<int>& ends :
       {std::vector{1, 5}, {2, 5}, {3, 5}, {4, 5}, {1, 2, 3, 4, 5}}) {
    for (const bool recompute : {false, true}) {
      for (const bool split : {false, true}) {
        const ChainStep cut = step_of(ends, recompute, split);
        EXPECT_EQ(cut.loss, whole.loss);
        ASSERT_EQ(cut.gradients.size(), whole.gradients.size());
        for (std::size_t k = 0; k < cut.gradients.size(); ++k) {
          EXPECT_TRUE(at::equal(cut.gradients[k], whole.gradients[k])) << ends.size() << " " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace motley::testing
