#include "models/package/graph.h"

#include <algorithm>
#include <array>

namespace motley {

std::string_view role_name(Role role) {
  static constexpr std::array<std::string_view, kRoles> kNames = {
      "input", "parameter", "constant", "statistic",  "target",
      "grad",  "saved",     "queued",   "output",     "loss",
      "count", "correct",   "observed", "input_grad", "parameter_grad"};
  return kNames.at(static_cast<std::size_t>(role));
}

std::optional<std::int64_t> BatchInteger::at(std::int64_t samples) const {
  std::int64_t value = 0;
  if (__builtin_mul_overflow(per_sample, samples, &value) ||
      __builtin_add_overflow(value, constant, &value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<ValueId> Graph::given(RoleIndex role) const {
  const auto found = std::ranges::find(gives, role, [](const auto& give) { return give.first; });
  if (found == gives.end()) return std::nullopt;
  return found->second;
}

int Graph::count_given(Role role) const {
  return static_cast<int>(
      std::ranges::count_if(gives, [&](const auto& give) { return give.first.role == role; }));
}

}  // namespace motley
