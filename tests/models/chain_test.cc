#include "models/layers/chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "chain_fixture.h"

namespace motley::testing {
namespace {

class Chain : public ::testing::TestWithParam<SmallModel> {
 protected:
  const ModelConfig& config() const { return GetParam().config; }

  int layer_count() const {
    return static_cast<int>(describe_model(config()).value().layers.size());
  }

  at::Tensor tokens() const { return some_tokens(config(), 3, 1); }

  at::Tensor targets() const { return some_tokens(config(), 3, 2); }

 private:
  c10::InferenceMode guard_;
};

INSTANTIATE_TEST_SUITE_P(Families,
                         Chain,
                         ::testing::ValuesIn(small_models()),
                         [](const auto& instance) { return instance.param.name; });

// Emulates a boundary between processes: the data arrives in other memory, here misaligned.
class Boundary {
 public:
  at::Tensor carry(const at::Tensor& x) {
    memory_.resize(static_cast<std::size_t>(x.numel()) + 1);
    std::memcpy(memory_.data() + 1, x.data_ptr<float>(),
                static_cast<std::size_t>(x.numel()) * sizeof(float));
    return at::from_blob(memory_.data() + 1, x.sizes(), at::kFloat);
  }

 private:
  std::vector<float> memory_;
};

StepResult split_step(const ModelConfig& config,
                      int cut,
                      const at::Tensor& tokens,
                      const at::Tensor& targets,
                      const MicroContext& micro) {
  const ModelSpec spec = describe_model(config).value();
  LayerChain front(config, spec, 0, cut);
  LayerChain back(config, spec, cut, static_cast<int>(spec.layers.size()));
  front.initialize(5);
  back.initialize(5);
  Boundary forward;
  Boundary backward;
  StepResult result;
  at::Tensor x = forward.carry(front.forward(tokens, micro));
  result.loss = back.forward_loss(x, targets, micro).loss_sum;
  static_cast<void>(front.backward(backward.carry(back.backward_loss(micro)), micro));
  append_gradients(front, result.gradients);
  append_gradients(back, result.gradients);
  return result;
}

TEST_P(Chain, GivesTheSameBitsInFreshAndInReusedMemory) {
  LayerChain chain = whole_model(config());
  const StepResult first = step(chain, tokens(), targets(), {});
  const at::Tensor in_the_way = at::full({12345}, NAN);
  EXPECT_EQ(step(chain, tokens(), targets(), {}), first);
  LayerChain another = whole_model(config());
  EXPECT_EQ(step(another, tokens(), targets(), {}), first);
}

// With one row, a tensor expanded over rows is still the parameter itself.
TEST_P(Chain, LeavesItsParametersAsTheyAre) {
  for (const int context : {1, 2, config().context}) {
    for (const std::int64_t samples : {1, 2}) {
      ModelConfig changed = config();
      changed.context = context;
      LayerChain chain = whole_model(changed);
      const std::vector<float> before = copy_of(chain.values());
      static_cast<void>(
          step(chain, some_tokens(changed, samples, 1), some_tokens(changed, samples, 2), {}));
      static_cast<void>(chain.logits_at(some_tokens(changed, samples, 3), 0, {.training = false}));
      EXPECT_EQ(copy_of(chain.values()), before) << samples << " samples of " << context;
    }
  }
}

TEST_P(Chain, GivesTheSameBitsWhereverItIsCut) {
  LayerChain chain = whole_model(config());
  const StepResult whole = step(chain, tokens(), targets(), {});
  for (int cut = 1; cut < layer_count(); ++cut) {
    EXPECT_EQ(split_step(config(), cut, tokens(), targets(), {}), whole) << "cut at " << cut;
  }
}

TEST_P(Chain, GivesTheSameBitsWhenItRecomputesAndKeepsOnlyTokens) {
  LayerChain keeping = whole_model(config());
  LayerChain recomputing = whole_model(config(), /*recompute=*/true);
  const MicroContext micro{.step = 7, .micro = 3};
  EXPECT_EQ(step(recomputing, tokens(), targets(), micro),
            step(keeping, tokens(), targets(), micro));
  static_cast<void>(recomputing.forward_loss(tokens(), targets(), micro));
  EXPECT_EQ(recomputing.saved_bytes(3), 2 * tokens().numel() * 8);
  recomputing.drop_saved();
  EXPECT_EQ(recomputing.saved_bytes(3), 0);
}

TEST_P(Chain, KeepsMicroBatchesApart) {
  LayerChain chain = whole_model(config());
  const MicroContext first{.micro = 0};
  const MicroContext second{.micro = 1};
  static_cast<void>(step(chain, tokens(), targets(), first));
  static_cast<void>(chain.forward_loss(targets(), tokens(), second));
  static_cast<void>(chain.backward_loss(second));
  const std::vector<float> one_by_one = copy_of(chain.gradients());

  std::ranges::fill(chain.gradients(), 0.0F);
  static_cast<void>(chain.forward_loss(tokens(), targets(), first));
  static_cast<void>(chain.forward_loss(targets(), tokens(), second));
  static_cast<void>(chain.backward_loss(first));
  static_cast<void>(chain.backward_loss(second));
  EXPECT_EQ(copy_of(chain.gradients()), one_by_one);
}

// Two micro-batches through the model in two chains. With `in_parts` the weight parts of both run
// last.
std::vector<float> gradients_of_two(const ModelConfig& config,
                                    int cut,
                                    bool recompute,
                                    bool in_parts) {
  const ModelSpec spec = describe_model(config).value();
  LayerChain front(config, spec, 0, cut, {.recompute = recompute});
  LayerChain back(config, spec, cut, static_cast<int>(spec.layers.size()),
                  {.recompute = recompute});
  front.initialize(5);
  back.initialize(5);
  for (std::int64_t micro = 0; micro < 2; ++micro) {
    const MicroContext context{.step = 3, .micro = micro};
    const auto key = static_cast<std::uint64_t>(2 * micro);
    at::Tensor x = front.forward(some_tokens(config, 3, key), context);
    static_cast<void>(back.forward_loss(x.clone(), some_tokens(config, 3, key + 1), context));
  }
  for (std::int64_t micro = 0; micro < 2; ++micro) {
    const MicroContext context{.step = 3, .micro = micro};
    if (in_parts) {
      at::Tensor grad = back.backward_loss_input(context).clone();
      static_cast<void>(front.backward_input(std::move(grad), context));
      EXPECT_GT(front.saved_bytes(micro) + back.saved_bytes(micro), 0);
    } else {
      static_cast<void>(front.backward(back.backward_loss(context).clone(), context));
    }
  }
  for (std::int64_t micro = 0; micro < 2 && in_parts; ++micro) {
    front.backward_weight(micro);
    back.backward_weight(micro);
    EXPECT_EQ(front.saved_bytes(micro) + back.saved_bytes(micro), 0);
  }
  std::vector<float> gradients;
  append_gradients(front, gradients);
  append_gradients(back, gradients);
  return gradients;
}

TEST_P(Chain, GivesTheSameBitsWhenBackwardComesInTwoParts) {
  const std::vector<float> whole = gradients_of_two(config(), 1, false, /*in_parts=*/false);
  for (int cut = 1; cut < layer_count(); ++cut) {
    for (const bool recompute : {false, true}) {
      EXPECT_EQ(gradients_of_two(config(), cut, recompute, /*in_parts=*/true), whole)
          << "cut at " << cut << (recompute ? ", recomputed" : "");
    }
  }
}

TEST_P(Chain, ForgetsWeightPartsOfAnAbandonedStep) {
  LayerChain chain = whole_model(config());
  static_cast<void>(chain.forward_loss(tokens(), targets(), {}));
  static_cast<void>(chain.backward_loss_input({}));
  EXPECT_GT(chain.saved_bytes(0), 0);
  chain.drop_saved();
  EXPECT_EQ(chain.saved_bytes(0), 0);
}

// Compares the norm of the gradient with the slope of the loss along it, a central difference.
TEST_P(Chain, FollowsItsGradient) {
  LayerChain chain = whole_model(config());
  static_cast<void>(step(chain, tokens(), targets(), {}));
  double square = 0;
  for (const float g : chain.gradients()) square += static_cast<double>(g) * g;
  const double length = std::sqrt(square);
  const auto loss_after = [&](double distance) {
    for (std::size_t i = 0; i < chain.values().size(); ++i) {
      chain.values()[i] += static_cast<float>(distance / length) * chain.gradients()[i];
    }
    const double loss = chain.forward_loss(tokens(), targets(), {}).loss_sum;
    chain.drop_saved();
    return loss;
  };
  const double ahead = loss_after(1e-4);
  const double behind = loss_after(-2e-4);
  EXPECT_NEAR((ahead - behind) / 2e-4, length, 0.01 * length);
}

TEST_P(Chain, SeesNoFutureToken) {
  const ModelSpec spec = describe_model(config()).value();
  LayerChain body(config(), spec, 0, layer_count() - 1);
  body.initialize(5);
  at::Tensor changed = tokens();
  changed.narrow(1, 10, config().context - 10).fill_(0);
  const at::Tensor one = body.forward(tokens(), {.training = false});
  const at::Tensor other = body.forward(changed, {.training = false});
  EXPECT_TRUE(one.narrow(1, 0, 10).equal(other.narrow(1, 0, 10)));
  EXPECT_FALSE(one.equal(other));
}

TEST_P(Chain, ScoresTheLastPositionAsTheLossDoes) {
  LayerChain chain = whole_model(config());
  const MicroContext evaluate{.training = false};
  const at::Tensor first = tokens().narrow(1, 0, 1).contiguous();
  const at::Tensor next = targets().narrow(1, 0, 1).contiguous();
  const at::Tensor log_p = chain.logits_at(first, first.size(1) - 1, evaluate).log_softmax(-1);
  EXPECT_NEAR(chain.forward_loss(first, next, evaluate).loss_sum,
              -log_p.gather(1, next).sum().item<double>(), 1e-4);
}

TEST_P(Chain, EvaluatesWithoutKeepingAnything) {
  LayerChain chain = whole_model(config());
  const auto outcome = chain.forward_loss(tokens(), targets(), {.training = false});
  EXPECT_EQ(outcome.count, 3 * config().context);
  EXPECT_EQ(chain.saved_bytes(0), 0);
  if (config().dropout == 0.0) {
    EXPECT_NEAR(step(chain, tokens(), targets(), {}).loss, outcome.loss_sum,
                1e-6 * outcome.loss_sum);
  }
}

TEST_P(Chain, CountsWhatItKeepsUntilItsBackward) {
  LayerChain chain = whole_model(config());
  static_cast<void>(chain.forward_loss(tokens(), targets(), {.micro = 4}));
  EXPECT_GT(chain.saved_bytes(4), 3 * config().context * config().vocab * 4);
  static_cast<void>(chain.backward_loss({.micro = 4}));
  EXPECT_EQ(chain.saved_bytes(4), 0);
}

TEST_P(Chain, DropsTheSameForTheSamePlaceOnly) {
  LayerChain chain = whole_model(config());
  const auto loss = [&](const MicroContext& micro) {
    const double value = chain.forward_loss(tokens(), targets(), micro).loss_sum;
    chain.drop_saved();
    return value;
  };
  const bool drops = config().dropout > 0.0;
  const double base = loss({.seed = 1, .step = 2, .micro = 3});
  EXPECT_EQ(loss({.seed = 1, .step = 2, .micro = 3}), base);
  EXPECT_EQ(loss({.seed = 9, .step = 2, .micro = 3}) != base, drops);
  EXPECT_EQ(loss({.seed = 1, .step = 9, .micro = 3}) != base, drops);
  EXPECT_EQ(loss({.seed = 1, .step = 2, .micro = 9}) != base, drops);
}

TEST(ChainDeathTest, RefusesASecondForwardOfTheSameMicroBatch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // LibTorch has its own threads
  const c10::InferenceMode guard;
  const ModelConfig config = small_gpt2();
  LayerChain chain = whole_model(config);
  const at::Tensor tokens = some_tokens(config, 1, 1);
  static_cast<void>(chain.forward_loss(tokens, tokens, {}));
  EXPECT_DEATH(static_cast<void>(chain.forward_loss(tokens, tokens, {})), "still waits");
  chain.drop_saved();
  EXPECT_DEATH(static_cast<void>(chain.backward_loss({})), "no forward");
  EXPECT_DEATH(chain.backward_weight(0), "no weight part");
}

TEST(Gpt2Attention, HandlesMoreRowsThanOneBlock) {
  const c10::InferenceMode guard;
  ModelConfig config = small_gpt2(0.1);
  config.context = 300;  // three blocks, the last one partial
  LayerChain chain = whole_model(config);
  const at::Tensor tokens = some_tokens(config, 2, 1);
  const at::Tensor targets = some_tokens(config, 2, 2);
  EXPECT_EQ(split_step(config, 2, tokens, targets, {}), step(chain, tokens, targets, {}));
}

}  // namespace
}  // namespace motley::testing
