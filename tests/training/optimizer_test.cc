#include "training/optimizer/optimizer.h"

#include <cmath>

#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/philox.h"
#include "training/optimizer/muon.h"

namespace motley {
namespace {

TrainConfig config_of(const std::string& optimizer) {
  TrainConfig train;
  train.optimizer = optimizer;
  return train;
}

std::vector<float> noise(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 2 * to_unit_float(philox4x32(1, stream, i)[0]) - 1;
  }
  return values;
}

StepFactors factors_of(const Optimizer& optimizer, double lr, std::int64_t update_number = 1) {
  return {lr, optimizer.corrections(update_number)};
}

// One parameter with its moments.
struct State {
  std::vector<float> values;
  std::vector<std::vector<float>> moments;

  State(const Optimizer& optimizer, std::size_t count)
      : values(noise(count, 0)),
        moments(optimizer.moment_names().size(), std::vector<float>(count)) {}

  // Updates the range [begin, end).
  void update(const Optimizer& optimizer,
              const std::vector<float>& gradients,
              const UpdateArguments& arguments,
              std::size_t begin,
              std::size_t end) {
    const auto part = [&](std::vector<float>& all) {
      return std::span(all).subspan(begin, end - begin);
    };
    std::vector<std::span<float>> spans;
    for (auto& moment : moments) spans.push_back(part(moment));
    optimizer.update(part(values), std::span(gradients).subspan(begin, end - begin), spans,
                     arguments);
  }

  void update(const Optimizer& optimizer,
              const std::vector<float>& gradients,
              const UpdateArguments& arguments) {
    update(optimizer, gradients, arguments, 0, values.size());
  }

  friend bool operator==(const State&, const State&) = default;
};

class EachOptimizer : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Optimizer, EachOptimizer, testing::ValuesIn(optimizer_names()));

// Momentum may be applied by the sender or by the optimizer, with the same result; weight decay
// always has momentum.
TEST(Sgd, MovesByPushesAsByTheirGradients) {
  const auto sgd = make_optimizer(config_of("sgd"));
  constexpr std::size_t kCount = 50;
  State plain(*sgd, kCount);
  State corrected = plain;
  std::vector<float> velocity(kCount);
  for (int step = 1; step <= 30; ++step) {
    const std::vector<float> gradients = noise(kCount, static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < kCount; ++i) velocity[i] = 0.9F * velocity[i] + gradients[i];
    UpdateArguments arguments{.factors = factors_of(*sgd, 0.1), .gradient_scale = 0.5F};
    plain.update(*sgd, gradients, arguments);
    arguments.corrected = true;
    corrected.update(*sgd, velocity, arguments);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(corrected.values[i], plain.values[i], 1e-5) << i;
  }
}

TEST_P(EachOptimizer, GivesTheSameBitsForAnySplit) {
  const auto optimizer = make_optimizer(config_of(GetParam()));
  rc::check("split", [&] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 200);
    State whole(*optimizer, count);
    State split = whole;
    for (std::int64_t number = 1; number <= 3; ++number) {
      const auto gradients = noise(count, static_cast<std::uint64_t>(number));
      const UpdateArguments arguments{.factors = factors_of(*optimizer, 0.01, number),
                                      .gradient_scale = 0.37F};
      whole.update(*optimizer, gradients, arguments);
      const auto cut = *rc::gen::inRange<std::size_t>(0, count + 1);
      split.update(*optimizer, gradients, arguments, cut, count);
      split.update(*optimizer, gradients, arguments, 0, cut);
    }
    RC_ASSERT(split == whole);
  });
}

TEST_P(EachOptimizer, ScalesTheGradient) {
  const auto optimizer = make_optimizer(config_of(GetParam()));
  State scaled(*optimizer, 50);
  State plain = scaled;
  const auto gradients = noise(50, 1);
  std::vector<float> quartered = gradients;
  for (float& gradient : quartered) gradient *= 0.25F;  // exact
  scaled.update(*optimizer, gradients,
                {.factors = factors_of(*optimizer, 0.1), .gradient_scale = 0.25F});
  plain.update(*optimizer, quartered, {.factors = factors_of(*optimizer, 0.1)});
  EXPECT_EQ(scaled, plain);
}

TEST_P(EachOptimizer, ShrinksOnlyDecayedRanges) {
  const auto optimizer = make_optimizer(config_of(GetParam()));
  const std::vector<float> zeros(20, 0.0F);
  State decayed(*optimizer, 20);
  State undecayed = decayed;
  const State before = decayed;
  decayed.update(*optimizer, zeros, {.factors = factors_of(*optimizer, 0.1), .decay_factor = 1});
  undecayed.update(*optimizer, zeros, {.factors = factors_of(*optimizer, 0.1), .decay_factor = 0});
  EXPECT_EQ(undecayed, before);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_FLOAT_EQ(decayed.values[i], before.values[i] * 0.99F);  // 1 - 0.1 × 0.1
  }
}

TEST_P(EachOptimizer, TakesAnEmptyRange) {
  const auto optimizer = make_optimizer(config_of(GetParam()));
  State state(*optimizer, 0);
  state.update(*optimizer, {}, {.factors = factors_of(*optimizer, 0.1)});
  EXPECT_TRUE(state.values.empty());
}

TEST_P(EachOptimizer, EndsTheProgramOnAMissingMoment) {
  const auto optimizer = make_optimizer(config_of(GetParam()));
  State state(*optimizer, 4);
  state.moments.pop_back();
  EXPECT_DEATH(state.update(*optimizer, noise(4, 1), {.factors = factors_of(*optimizer, 0.1)}),
               "moments for");
}

TEST(Optimizer, NamesItsMomentsAsCheckpointsDo) {
  EXPECT_THAT(make_optimizer(config_of("adamw"))->moment_names(),
              testing::ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(make_optimizer(config_of("sgd"))->moment_names(), testing::ElementsAre("momentum"));
  EXPECT_THAT(make_optimizer(config_of("lion"))->moment_names(), testing::ElementsAre("exp_avg"));
  EXPECT_THAT(make_optimizer(config_of("muon"))->moment_names(),
              testing::ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_EQ(moments_per_parameter(config_of("adamw")), 2);
  EXPECT_EQ(moments_per_parameter(config_of("sgd")), 1);
  EXPECT_EQ(moments_per_parameter(config_of("lion")), 1);
  EXPECT_EQ(moments_per_parameter(config_of("muon")), 2);
}

// As the table names them.
TEST(Optimizer, UpdatesMatricesItselfIfTheyHaveMoments) {
  for (const OptimizerFacts& facts : optimizers()) {
    const auto optimizer = make_optimizer(config_of(facts.name));
    const Muon* const matrices = optimizer->matrices();
    ASSERT_EQ(matrices != nullptr, !facts.matrix_moments.empty()) << facts.name;
    if (matrices == nullptr) continue;
    EXPECT_THAT(matrices->moment_names(), testing::ElementsAreArray(facts.matrix_moments));
  }
}

// Values move by the learning rate, whatever the size of the gradient.
TEST(Lion, StepsByTheSign) {
  TrainConfig train = config_of("lion");
  train.weight_decay = 0;
  const auto lion = make_optimizer(train);
  State state(*lion, 3);
  state.values = {1, 1, 1};
  state.update(*lion, {1e-20F, -1e20F, 0}, {.factors = {.lr = 0.25}});
  EXPECT_EQ(state.values, (std::vector<float>{0.75F, 1.25F, 1}));
}

// The formulas of the header in double.
struct Reference {
  TrainConfig train;
  double value = 0;
  double m = 0;
  double v = 0;

  void adamw(double gradient, double lr, std::int64_t update_number) {
    const auto t = static_cast<double>(update_number);
    value *= 1 - lr * train.weight_decay;
    m = train.beta1 * m + (1 - train.beta1) * gradient;
    v = train.beta2 * v + (1 - train.beta2) * gradient * gradient;
    const double root = std::sqrt(v) / std::sqrt(1 - std::pow(train.beta2, t)) + train.epsilon;
    value -= lr / (1 - std::pow(train.beta1, t)) * m / root;
  }

  void sgd(double gradient, double lr) {
    m = train.momentum * m + gradient + train.weight_decay * value;
    value -= lr * m;
  }

  void lion(double gradient, double lr) {
    const double direction = train.beta1 * m + (1 - train.beta1) * gradient;
    const double sign = direction > 0 ? 1 : direction < 0 ? -1 : 0;
    value = value * (1 - lr * train.weight_decay) - lr * sign;
    m = train.beta2 * m + (1 - train.beta2) * gradient;
  }

  void update(double gradient, double lr, std::int64_t update_number) {
    switch (optimizer_of(train).kind) {
      case OptimizerKind::kAdamw:
      case OptimizerKind::kMuon:
        return adamw(gradient, lr, update_number);
      case OptimizerKind::kSgd:
        return sgd(gradient, lr);
      case OptimizerKind::kLion:
        return lion(gradient, lr);
    }
    FAIL() << train.optimizer << " has no formula here";
  }
};

// A hundred updates of values near 1, each with a few roundings of 2^-24: 1e-5 has some margin.
TEST_P(EachOptimizer, FollowsItsFormula) {
  const TrainConfig train = config_of(GetParam());
  const auto optimizer = make_optimizer(train);
  constexpr std::size_t kCount = 33;
  State state(*optimizer, kCount);
  std::vector<Reference> references;
  for (const float value : state.values) references.push_back({train, value, 0, 0});
  for (std::int64_t number = 1; number <= 100; ++number) {
    const auto gradients = noise(kCount, static_cast<std::uint64_t>(number));
    constexpr double kLr = 1e-3;
    state.update(*optimizer, gradients, {.factors = factors_of(*optimizer, kLr, number)});
    for (std::size_t i = 0; i < kCount; ++i) {
      references[i].update(gradients[i], kLr, number);
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(state.values[i], references[i].value, 1e-5);
}

// One value takes the scalar tail of the loop, seventeen mostly its vector part: the same bits.
TEST_P(EachOptimizer, GivesVectorAndScalarCodeTheSameBits) {
  const auto optimizer = make_optimizer(config_of(GetParam()));
  constexpr std::size_t kCount = 17;
  State together(*optimizer, kCount);
  State apart = together;
  const auto gradients = noise(kCount, 1);
  together.update(*optimizer, gradients, {.factors = factors_of(*optimizer, 0.1)});
  for (std::size_t i = 0; i < kCount; ++i) {
    apart.update(*optimizer, gradients, {.factors = factors_of(*optimizer, 0.1)}, i, i + 1);
  }
  EXPECT_EQ(apart, together);
}

}  // namespace
}  // namespace motley
