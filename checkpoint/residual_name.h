// What compressed sums of gradients still owe stands in a checkpoint beside the moments, as
// "residual.HOLDER/PARAMETER". A holder is one of the ranks that sum the parameter's gradient, by a
// number that does not follow from its rank (plan/holders.h). In
// manifests of version 1 it is the rank. In both, what all holders owe is added in the order of
// their numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace motley {

struct ResidualName {
  int holder = 0;
  std::string parameter;
};

[[nodiscard]] std::string residual_name(int holder, const std::string& parameter);

// Nothing where residual_name does not write it so.
[[nodiscard]] std::optional<ResidualName> parse_residual_name(std::string_view name);

// The names of each parameter's residuals, in the order of their holders.
[[nodiscard]] std::map<std::string, std::vector<std::string>> residual_names(
    const Manifest& manifest);

}  // namespace motley
