// Optimizers on flat fp32 arrays. Every operation is elementwise and none is contracted or
// reordered. A parameter's new value therefore does not depend on how the arrays are cut into
// ranges, on vector width or on the presence of fused multiply-add. Formulas and their order are
// PyTorch 1.13's, in fp32 with scalars computed in double and rounded once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "run_config/config.h"
#include "run_config/optimizers.h"

namespace motley {

class Muon;

// The factors of a step that depend on cos and pow, whose last bits differ between C libraries. One
// rank computes them for all, so that copies of parameters stay equal.
struct StepFactors {
  double lr = 0;
  std::array<double, 2> corrections{1, 1};  // bias corrections; 1 if the optimizer has none
};

struct UpdateArguments {
  StepFactors factors;
  float gradient_scale = 1;  // multiplies each gradient first: 1/tokens × clip factor
  double decay_factor = 1;   // of train.weight_decay; 0 = no weight decay
  // Whether the gradient is momentum-corrected (sgd). Then only weight decay's momentum is applied
  // here.
  bool corrected = false;
};

// Stateless: the only state between updates is the moments, which the caller stores and saves. Safe
// to share between threads.
class Optimizer {
 public:
  virtual ~Optimizer();

  // The update of hidden matrices; nullptr if they are updated like all parameters.
  [[nodiscard]] const Muon* matrices() const { return matrices_.get(); }

  // Names of the moments, in the order in which update() takes them.
  [[nodiscard]] std::vector<std::string> moment_names() const {
    return {facts_->moments.begin(), facts_->moments.end()};
  }

  // The bias corrections of a parameter's moments at update number `update_number`, counted from 1
  // without skipped steps. Greater than 0 and at most 1.
  [[nodiscard]] virtual std::array<double, 2> corrections(std::int64_t update_number) const = 0;

  // Updates one range of values and moments in place. Moments start as zeros.
  // REQUIRES: one moment for each name; all spans N long and not overlapping.
  virtual void update(std::span<float> values_N,
                      std::span<const float> gradients_N,
                      std::span<const std::span<float>> moments,
                      const UpdateArguments& arguments) const = 0;

 protected:
  explicit Optimizer(const TrainConfig& train);

 private:
  const OptimizerFacts* facts_;
  std::unique_ptr<const Muon> matrices_;
};

// train.optimizer (run_config/optimizers.h):
//   "adamw" (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019), with moments
//   exp_avg m and exp_avg_sq v, t = update_number and corrections 1 - beta1^t and 1 - beta2^t:
//     p = p (1 - lr decay);  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
//     p = p - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//   "sgd", with moment momentum b:
//     g = g + decay p;  b = momentum b + g;  p = p - lr b
//   with a momentum-corrected gradient:
//     b = momentum b + decay p;  p = p - lr (b + g)
//   "lion" (Chen et al., "Symbolic discovery of optimization algorithms", 2023), with moment
//   exp_avg m:
//     p = p (1 - lr decay) - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g
//   "muon": as "adamw", but for matrices() (training/optimizer/muon.h).
// REQUIRES: a validated configuration.
[[nodiscard]] std::unique_ptr<const Optimizer> make_optimizer(const TrainConfig& train);

// The momentum that senders apply in place of the optimizer if all-reduces between machines use
// topk (training/momentum_correction/corrected_allreduces.h); 0 = none. keeps_statistics: whether
// the model's layers keep statistics. These travel with the gradients, and a momentum would change
// them.
[[nodiscard]] float momentum_of_senders(const Config& config, bool keeps_statistics);

}  // namespace motley
