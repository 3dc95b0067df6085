// What compressed sums of gradients still owe stands in a checkpoint beside the moments, as
// "residual.HOLDER/PARAMETER". Where senders apply the momentum (training/pushes/pushed_sums.h) it
// is "unsent.HOLDER/PARAMETER", of pushes, and beside it "velocity.HOLDER/PARAMETER". A holder is
// one of the ranks that sum the parameter's gradient, by a number that does not follow from its
// rank (plan/holders.h). In manifests of version 1 it is the rank. In both, what all holders owe is
// added in the order of their numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace motley {

enum class Owed { kResidual, kUnsent, kVelocity };

struct ResidualName {
  Owed owed = Owed::kResidual;
  int holder = 0;
  std::string parameter;
};

[[nodiscard]] std::string residual_name(int holder,
                                        const std::string& parameter,
                                        Owed owed = Owed::kResidual);

// Nothing where residual_name does not write it so.
[[nodiscard]] std::optional<ResidualName> parse_residual_name(std::string_view name);

// The names of what is owed of each parameter, in the order of the holders.
[[nodiscard]] std::map<std::string, std::vector<std::string>> residual_names(
    const Manifest& manifest, Owed owed = Owed::kResidual);

}  // namespace motley
