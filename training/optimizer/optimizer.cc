#include "training/optimizer/optimizer.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "training/optimizer/muon.h"

namespace motley {
namespace {

class AdamW final : public Optimizer {
 public:
  explicit AdamW(const TrainConfig& train)
      : Optimizer(train),
        beta1_(train.beta1),
        beta2_(train.beta2),
        epsilon_(train.epsilon),
        decay_(train.weight_decay) {}

  [[nodiscard]] std::array<double, 2> corrections(std::int64_t update_number) const override {
    MOTLEY_CHECK(update_number >= 1, "update {}", update_number);
    const auto t = static_cast<double>(update_number);
    return {1 - std::pow(beta1_, t), 1 - std::pow(beta2_, t)};
  }

  void update(std::span<float> values_N,
              std::span<const float> gradients_N,
              std::span<const std::span<float>> moments,
              const UpdateArguments& arguments) const override {
    MOTLEY_CHECK(moments.size() == 2, "{} moments for adamw", moments.size());
    MOTLEY_CHECK(gradients_N.size() == values_N.size() && moments[0].size() == values_N.size() &&
                     moments[1].size() == values_N.size(),
                 "{} values, {} gradients, moments of {} and {}", values_N.size(),
                 gradients_N.size(), moments[0].size(), moments[1].size());
    const auto& [lr, corrections] = arguments.factors;
    const double decay = decay_ * arguments.decay_factor;
    const auto keep = static_cast<float>(1 - lr * decay);
    const auto scale = arguments.gradient_scale;
    const auto beta1 = static_cast<float>(beta1_);
    const auto beta2 = static_cast<float>(beta2_);
    const auto rest1 = static_cast<float>(1 - beta1_);
    const auto rest2 = static_cast<float>(1 - beta2_);
    const auto correction2_root = static_cast<float>(std::sqrt(corrections[1]));
    const auto epsilon = static_cast<float>(epsilon_);
    const auto step_size = static_cast<float>(lr / corrections[0]);
    float* __restrict p = values_N.data();
    float* __restrict m = moments[0].data();
    float* __restrict v = moments[1].data();
    const float* __restrict gradients = gradients_N.data();
    for (std::size_t i = 0; i < values_N.size(); ++i) {
      const float g = gradients[i] * scale;
      m[i] = m[i] * beta1 + rest1 * g;
      v[i] = v[i] * beta2 + (rest2 * g) * g;
      const float root = std::sqrt(v[i]) / correction2_root + epsilon;
      p[i] = p[i] * keep - (step_size * m[i]) / root;
    }
  }

 private:
  double beta1_;
  double beta2_;
  double epsilon_;
  double decay_;
};

void check_one_moment(const char* optimizer,
                      std::span<const float> values_N,
                      std::span<const float> gradients_N,
                      std::span<const std::span<float>> moments) {
  MOTLEY_CHECK(moments.size() == 1, "{} moments for {}", moments.size(), optimizer);
  MOTLEY_CHECK(gradients_N.size() == values_N.size() && moments[0].size() == values_N.size(),
               "{} values, {} gradients, moment of {}", values_N.size(), gradients_N.size(),
               moments[0].size());
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const TrainConfig& train)
      : Optimizer(train), momentum_(train.momentum), decay_(train.weight_decay) {}

  [[nodiscard]] std::array<double, 2> corrections(std::int64_t /*update_number*/) const override {
    return {1, 1};
  }

  void update(std::span<float> values_N,
              std::span<const float> gradients_N,
              std::span<const std::span<float>> moments,
              const UpdateArguments& arguments) const override {
    check_one_moment("sgd", values_N, gradients_N, moments);
    const auto decay = static_cast<float>(decay_ * arguments.decay_factor);
    const auto momentum = static_cast<float>(momentum_);
    const auto lr = static_cast<float>(arguments.factors.lr);
    const auto scale = arguments.gradient_scale;
    float* __restrict p = values_N.data();
    float* __restrict b = moments[0].data();
    const float* __restrict gradients = gradients_N.data();
    if (arguments.corrected) {
      for (std::size_t i = 0; i < values_N.size(); ++i) {
        b[i] = b[i] * momentum + decay * p[i];
        p[i] = p[i] - lr * (b[i] + gradients[i] * scale);
      }
      return;
    }
    for (std::size_t i = 0; i < values_N.size(); ++i) {
      const float g = gradients[i] * scale + decay * p[i];
      b[i] = b[i] * momentum + g;
      p[i] = p[i] - lr * b[i];
    }
  }

 private:
  double momentum_;
  double decay_;
};

class Lion final : public Optimizer {
 public:
  explicit Lion(const TrainConfig& train)
      : Optimizer(train), beta1_(train.beta1), beta2_(train.beta2), decay_(train.weight_decay) {}

  [[nodiscard]] std::array<double, 2> corrections(std::int64_t /*update_number*/) const override {
    return {1, 1};
  }

  void update(std::span<float> values_N,
              std::span<const float> gradients_N,
              std::span<const std::span<float>> moments,
              const UpdateArguments& arguments) const override {
    check_one_moment("lion", values_N, gradients_N, moments);
    const double rate = arguments.factors.lr;
    const double decay = decay_ * arguments.decay_factor;
    const auto keep = static_cast<float>(1 - rate * decay);
    const auto lr = static_cast<float>(rate);
    const auto scale = arguments.gradient_scale;
    const auto beta1 = static_cast<float>(beta1_);
    const auto beta2 = static_cast<float>(beta2_);
    const auto rest1 = static_cast<float>(1 - beta1_);
    const auto rest2 = static_cast<float>(1 - beta2_);
    float* __restrict p = values_N.data();
    float* __restrict m = moments[0].data();
    const float* __restrict gradients = gradients_N.data();
    for (std::size_t i = 0; i < values_N.size(); ++i) {
      const float g = gradients[i] * scale;
      const float direction = m[i] * beta1 + rest1 * g;
      const float sign = (direction > 0 ? 1.0F : 0.0F) - (direction < 0 ? 1.0F : 0.0F);
      p[i] = p[i] * keep - lr * sign;
      m[i] = m[i] * beta2 + rest2 * g;
    }
  }

 private:
  double beta1_;
  double beta2_;
  double decay_;
};

}  // namespace

Optimizer::Optimizer(const TrainConfig& train)
    : facts_(&optimizer_of(train)),
      matrices_(facts_->matrix_moments.empty() ? nullptr : std::make_unique<const Muon>(train)) {}

Optimizer::~Optimizer() = default;

std::unique_ptr<const Optimizer> make_optimizer(const TrainConfig& train) {
  switch (optimizer_of(train).kind) {
    case OptimizerKind::kAdamw:
      return std::make_unique<AdamW>(train);
    case OptimizerKind::kSgd:
      return std::make_unique<Sgd>(train);
    case OptimizerKind::kLion:
      return std::make_unique<Lion>(train);
    case OptimizerKind::kMuon:
      return std::make_unique<AdamW>(train);
  }
  MOTLEY_CHECK(false, "train.optimizer '{}' is not computed", train.optimizer);
}

float momentum_of_senders(const Config& config, bool keeps_statistics) {
  const bool corrects =
      optimizer_of(config.train).kind == OptimizerKind::kSgd && config.compression.error_feedback;
  return corrects && !keeps_statistics ? static_cast<float>(config.train.momentum) : 0;
}

}  // namespace motley
