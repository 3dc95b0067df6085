// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): momentum,
// of which each matrix is replaced by the nearest one with orthogonal rows or columns.
//
// With moment m, g the scaled gradient and mu = train.muon_momentum:
//   m = mu m + (1 - mu) g;  u = mu m + (1 - mu) g                          (Nesterov)
//   p = p (1 - lr decay) - lr 0.2 sqrt(max(rows, columns)) orthogonal(u)
// The factor 0.2 sqrt(max(rows, columns)) gives updates the root mean square of AdamW's (Liu et
// al., "Muon is scalable for LLM training", 2025), so that one learning rate serves both; it is
// adjust_lr_fn = "match_rms_adamw" of torch.optim.Muon.
//
// orthogonal(u): X = u / max(|u|, 1e-7), transposed if it has more rows than columns, with the
// Frobenius norm in double; then five times A = X Xᵀ, X = 3.4445 X + (-4.7750 A + 2.0315 A A) X.
// All of it is in fp32 with a fixed order of additions, so that all copies of a parameter get the
// same bits on any processor, with any number of threads.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "models/spec/matrix_shape.h"
#include "run_config/config.h"
#include "training/optimizer/work_parts.h"

namespace motley {

struct UpdateArguments;

// The coefficients and the number of iterations (Newton-Schulz).
inline constexpr std::array<float, 3> kNewtonSchulz = {3.4445F, -4.7750F, 2.0315F};
inline constexpr int kNewtonSchulzSteps = 5;
inline constexpr float kNewtonSchulzEpsilon = 1e-7F;

// Stateless, as Optimizer.
class Muon {
 public:
  explicit Muon(const TrainConfig& train)
      : momentum_(train.muon_momentum), decay_(train.weight_decay) {}

  // As Optimizer::moment_names(), of a matrix.
  [[nodiscard]] std::vector<std::string> moment_names() const { return {"momentum"}; }

  // Updates a whole matrix and its moment in place. REQUIRES: spans of shape.rows * shape.columns
  // values that do not overlap.
  void update(std::span<float> values,
              std::span<const float> gradients,
              std::span<float> moment,
              const MatrixShape& shape,
              const UpdateArguments& arguments,
              const InParts& in_parts) const;

  // The scalars of the formula, in double; rounded to fp32 where they are used.
  [[nodiscard]] double momentum() const { return momentum_; }

  [[nodiscard]] double kept(const UpdateArguments& arguments) const;  // 1 - lr decay
  [[nodiscard]] static double rate(const UpdateArguments& arguments, const MatrixShape& shape);

 private:
  double momentum_;
  double decay_;
};

// Products and sums of orthogonal(u).
[[nodiscard]] double orthogonal_flops(const MatrixShape& shape);

// Replaces u by orthogonal(u).
void orthogonalize(std::span<float> u, const MatrixShape& shape, const InParts& in_parts);

}  // namespace motley
