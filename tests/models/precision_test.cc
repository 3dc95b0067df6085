// Layers with products in bf16 and fp16 compared with the same layers in fp32, on the tested
// device and in the processor's own kernels.
#include <string>

#include <gtest/gtest.h>

#include "device_chain.h"
#include "models/device/dtype_support.h"

namespace motley::testing {
namespace {

constexpr MicroContext kMicro{.seed = 11, .step = 3, .micro = 2};

// Relative to the largest value of a tensor. bf16 has 8 significant bits, fp16 11, and a gradient
// has passed through about ten products.
double tolerance(at::ScalarType type) {
  return type == at::kBFloat16 ? 0.05 : 0.01;
}

struct PrecisionCase {
  const char* name;
  at::ScalarType type;
  ModelConfig config;
  bool own_kernels = false;  // those of the processor
};

void PrintTo(const PrecisionCase& value, std::ostream* out) {
  *out << value.name;
}

class Precision : public ::testing::TestWithParam<PrecisionCase> {
 protected:
  void SetUp() override {
    const bool on_processor = GetParam().own_kernels || tested_device().is_host();
    if (GetParam().own_kernels && !computes_products_in(ComputeDevice(), GetParam().type)) {
      GTEST_SKIP() << "this processor has no " << dtype_name(GetParam().type);
    }
    if (on_processor && GetParam().type == at::kHalf) {
      GTEST_SKIP() << "LibTorch for processors has fp16 in some versions only";
    }
  }

  [[nodiscard]] LayerChain chain(at::ScalarType products, int first, int last, bool recompute) {
    const ModelConfig& config = GetParam().config;
    const bool own = GetParam().own_kernels;
    LayerChain made(config, describe_model(config).value(), first, last,
                    {.recompute = recompute,
                     .device = own ? c10::Device(c10::kCPU) : tested_device().torch(),
                     .plain_operations = !own,
                     .products = products});
    made.initialize(5);
    return made;
  }

  [[nodiscard]] Results results(LayerChain& chain, Way way = Way::kWhole) const {
    return results_of(chain, GetParam().config, 3, kMicro, way);
  }

 private:
  c10::InferenceMode guard_;
};

INSTANTIATE_TEST_SUITE_P(
    Families,
    Precision,
    ::testing::Values(PrecisionCase{"gpt2_bf16", at::kBFloat16, small_gpt2()},
                      PrecisionCase{"gpt2_bf16_dropout", at::kBFloat16, small_gpt2(0.1)},
                      PrecisionCase{"mlp_bf16", at::kBFloat16, small_mlp(0.1)},
                      PrecisionCase{"gpt2_fp16", at::kHalf, small_gpt2()},
                      PrecisionCase{"gpt2_fp16_dropout", at::kHalf, small_gpt2(0.1)},
                      PrecisionCase{"mlp_fp16", at::kHalf, small_mlp()},
                      PrecisionCase{"gpt2_bf16_own_kernels", at::kBFloat16, small_gpt2(0.1), true},
                      PrecisionCase{"mlp_bf16_own_kernels", at::kBFloat16, small_mlp(), true}),
    [](const auto& instance) { return instance.param.name; });

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item().toDouble();
}

// The largest relative difference of two tensors of the results.
double distance(const Results& results, const Results& expected) {
  double most = std::abs(results.outcome.loss_sum - expected.outcome.loss_sum) /
                std::max(expected.outcome.loss_sum, 1.0);
  for (std::size_t i = 0; i < results.tensors.size(); ++i) {
    const at::Tensor& other = expected.tensors[i].second;
    if (!other.defined()) continue;
    const double share = largest(results.tensors[i].second - other) / largest(other);
    most = share <= most ? most : share;  // also keeps NaN
  }
  return most;
}

void expect_same_bits(const Results& results, const Results& expected) {
  EXPECT_EQ(results.outcome.loss_sum, expected.outcome.loss_sum);
  for (std::size_t i = 0; i < results.tensors.size(); ++i) {
    const auto& [name, tensor] = results.tensors[i];
    if (!tensor.defined()) continue;
    EXPECT_TRUE(tensor.equal(expected.tensors[i].second)) << name;
  }
}

TEST_P(Precision, RoundsProductsAndNothingElse) {
  for (int layer = 0; layer < layer_count(GetParam().config); ++layer) {
    SCOPED_TRACE(::testing::Message() << "layer " << layer);
    LayerChain exact = chain(at::kFloat, layer, layer + 1, false);
    LayerChain rounded = chain(GetParam().type, layer, layer + 1, false);
    const double off = distance(results(rounded), results(exact));
    EXPECT_LE(off, tolerance(GetParam().type));
    const bool has_products =
        describe_model(GetParam().config).value().layers[static_cast<std::size_t>(layer)].kind !=
        "gpt2.embed";
    EXPECT_EQ(off > 0, has_products);
    EXPECT_EQ(rounded.saved_bytes(kMicro.micro), 0);
    for (const auto& parameter : rounded.parameters()) {
      EXPECT_EQ(parameter.gradient_tensor.scalar_type(), at::kFloat);
    }
  }
}

TEST_P(Precision, HasTheSameBitsInPartsAndRecomputed) {
  const int count = layer_count(GetParam().config);
  LayerChain whole = chain(GetParam().type, 0, count, false);
  const Results expected = results(whole);
  expect_same_bits(results(whole), expected);
  expect_same_bits(results(whole, Way::kSplit), expected);
  LayerChain recomputing = chain(GetParam().type, 0, count, true);
  expect_same_bits(results(recomputing), expected);
}

TEST_P(Precision, TakesNewValuesWhenABatchBegins) {
  const int count = layer_count(GetParam().config);
  LayerChain changed = chain(GetParam().type, 0, count, false);
  const Results before = results(changed);
  changed.initialize(6);
  const Results expected = results(changed);
  EXPECT_NE(expected.outcome.loss_sum, before.outcome.loss_sum);
  LayerChain written = chain(GetParam().type, 0, count, false);
  for (std::size_t i = 0; i < changed.parameters().size(); ++i) {
    written.parameters()[i].value_tensor.copy_(changed.parameters()[i].value_tensor);
  }
  written.begin(1.0);
  expect_same_bits(results(written), expected);
}

TEST_P(Precision, KeepsLessThanFp32OnDevices) {
  if (GetParam().own_kernels) GTEST_SKIP() << "the processor's kernels keep fp32";
  const ModelConfig& config = GetParam().config;
  const auto kept = [&](at::ScalarType type) {
    LayerChain layers = chain(type, 1, 2, false);
    at::Tensor x = input_of(config, 1, 3).to(layers.values_tensor().device());
    (void)layers.forward(std::move(x), kMicro);
    return static_cast<double>(layers.saved_bytes(kMicro.micro));
  };
  EXPECT_LT(kept(GetParam().type), 0.7 * kept(at::kFloat));
}

// The gradient scale applies only inside of the layers, not to their outputs.
TEST_P(Precision, ScalesNothingThatLeavesALayer) {
  const int count = layer_count(GetParam().config);
  LayerChain layers = chain(GetParam().type, 0, count, false);
  const Results plain = results(layers);
  layers.begin(8.0);
  const Results scaled = results(layers);
  if (GetParam().type == at::kBFloat16) return expect_same_bits(scaled, plain);
  EXPECT_LE(distance(scaled, plain), tolerance(at::kHalf));
}

TEST_P(Precision, HasRoomForSmallGradientsWhereTheyAreScaled) {
  if (GetParam().type != at::kHalf) GTEST_SKIP() << "bf16 has the range of fp32";
  const auto off = [&](double scale) {
    LayerChain exact = chain(at::kFloat, 1, 2, false);
    LayerChain rounded = chain(at::kHalf, 1, 2, false);
    rounded.begin(scale);
    Results each[2];
    LayerChain* const chains[2] = {&exact, &rounded};
    for (int i = 0; i < 2; ++i) {
      chains[i]->gradients_tensor().zero_();
      const c10::Device device = chains[i]->gradients_tensor().device();
      at::Tensor y = chains[i]->forward(input_of(GetParam().config, 1, 3).to(device), kMicro);
      at::Tensor small = some_floats(y.sizes(), 3).mul_(1e-9).to(device);
      (void)chains[i]->backward(std::move(small), kMicro);
      for (const LayerChain::Parameter& parameter : chains[i]->parameters()) {
        each[i].add(parameter.spec.name, parameter.gradient_tensor);
      }
    }
    return distance(each[1], each[0]);
  };
  EXPECT_GT(off(1.0), 0.5);
  EXPECT_LE(off(0x1p20), tolerance(at::kHalf));
}

}  // namespace
}  // namespace motley::testing
