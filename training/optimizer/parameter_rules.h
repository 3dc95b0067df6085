// ParameterRules: how the optimizer updates each parameter, by name: train.groups, and the matrices
// of hidden layers. A function of configuration and model alone, so it does not depend on the plan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "models/spec/matrix_shape.h"
#include "models/spec/model_spec.h"
#include "run_config/config.h"

namespace motley {

struct ParameterRule {
  double lr_factor = 1;
  std::optional<double> decay_factor;  // nullopt = by ParameterSpec::decayed
  std::optional<MatrixShape> matrix;   // if Optimizer::matrices() updates it
};

class ParameterRules {
 public:
  // kConfig, naming the closest parameters, if the pattern of a group matches none. REQUIRES: a
  // validated configuration.
  [[nodiscard]] static Result<ParameterRules> make(const TrainConfig& train,
                                                   const ModelSpec& model);

  // The rule of a parameter that is trained.
  [[nodiscard]] const ParameterRule& of(const std::string& name) const { return rules_.at(name); }

  // Floating-point operations of a step on matrices, for each trained parameter of the model.
  [[nodiscard]] double matrix_flops_per_parameter() const { return matrix_flops_per_parameter_; }

  // "muon trains 48 matrices with 84934656 parameters, adamw the other 39505152" for an optimizer
  // with an update of its own for matrices; "" otherwise.
  [[nodiscard]] const std::string& summary() const { return summary_; }

 private:
  std::map<std::string, ParameterRule> rules_;
  std::string summary_;
  double matrix_flops_per_parameter_ = 0;
};

// ParameterRules::matrix_flops_per_parameter(); 0 if the rules cannot be made.
[[nodiscard]] double matrix_flops_per_parameter(const TrainConfig& train, const ModelSpec& model);

}  // namespace motley
