// Names of error-feedback residuals in a checkpoint, beside the moments:
// "residual.MEMBER/PARAMETER". With momentum correction
// (training/momentum_correction/corrected_allreduces.h) the unsent corrected gradient is
// "unsent.MEMBER/PARAMETER", beside "velocity.MEMBER/PARAMETER". A member number identifies one of
// the ranks that all-reduce the parameter's gradient, independently of its rank
// (plan/gradient_group.h). In manifests of version 1 it is the rank. Readers add the residuals of
// all members in the order of their numbers. Residuals of pseudo-gradients
// (plan/rounds/rounds_plan.h) are "round_residual.MEMBER/PARAMETER".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace motley {

enum class ResidualKind { kResidual, kUnsent, kVelocity, kRound };

struct ResidualName {
  ResidualKind residual_kind = ResidualKind::kResidual;
  int member = 0;
  std::string parameter;
};

[[nodiscard]] std::string residual_name(int member,
                                        const std::string& parameter,
                                        ResidualKind residual_kind = ResidualKind::kResidual);

// nullopt for a name that residual_name does not produce.
[[nodiscard]] std::optional<ResidualName> parse_residual_name(std::string_view name);

// The names of each parameter's tensors of that kind, in the order of the member numbers.
[[nodiscard]] std::map<std::string, std::vector<std::string>> residual_names(
    const Manifest& manifest, ResidualKind residual_kind = ResidualKind::kResidual);

}  // namespace motley
