#include "cluster/supervisor/absences.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace motley {

void Absences::set(std::vector<std::string> without, double now_s, const RestartPolicy& policy) {
  for (const std::string& machine : without) {
    const double excluded_until_s = policy.excluded_until_s(machine);
    const auto found = losses_.find(machine);
    if (std::ranges::count(left_out_, machine) > 0) {
      found->second.excluded_until_s = excluded_until_s;
      continue;
    }
    const auto before = found == losses_.end() ? std::nullopt : std::optional(found->second);
    losses_.insert_or_assign(machine, lost_again(before, machine, now_s, excluded_until_s, rules_));
  }
  left_out_ = std::move(without);
}

std::vector<AbsentMachine> Absences::absent() const {
  std::vector<AbsentMachine> machines;
  for (const std::string& machine : left_out_) machines.push_back(losses_.at(machine));
  return machines;
}

}  // namespace motley
