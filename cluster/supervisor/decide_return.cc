#include "cluster/supervisor/decide_return.h"

#include <algorithm>
#include <cmath>

namespace motley {

AbsentMachine lost_again(const std::optional<AbsentMachine>& before,
                         const std::string& machine,
                         double now_s,
                         double excluded_until_s,
                         const ReturnRules& rules) {
  AbsentMachine absent{
      .machine = machine, .lost_at_s = now_s, .excluded_until_s = excluded_until_s};
  // The time for which it was kept out is not time that it stayed for.
  if (before && now_s - std::max(before->lost_at_s, earliest_return_s(*before, rules)) <
                    rules.forgotten_after_s) {
    absent.losses = before->losses + 1;
  }
  return absent;
}

double earliest_return_s(const AbsentMachine& absent, const ReturnRules& rules) {
  constexpr int kDoublingsMax = 30;
  if (absent.losses <= 1) return std::max(absent.lost_at_s, absent.excluded_until_s);
  const double wait_s =
      rules.first_wait_s * std::pow(2, std::min(absent.losses - 2, kDoublingsMax));
  return std::max(absent.lost_at_s + std::min(wait_s, rules.longest_wait_s),
                  absent.excluded_until_s);
}

std::vector<std::string> returnable(double now_s,
                                    std::span<const AbsentMachine> absent,
                                    const ReturnRules& rules) {
  std::vector<std::string> machines;
  for (const AbsentMachine& each : absent) {
    if (each.answers_since_s && now_s >= earliest_return_s(each, rules)) {
      machines.push_back(each.machine);
    }
  }
  return machines;
}

bool pays(const ReturnGain& gain, const ReturnRules& rules) {
  if (gain.present_step_s <= 0) return true;
  const double left_s =
      std::min(rules.pays_within_s, gain.present_step_s * static_cast<double>(gain.steps_left));
  return left_s * (1 - gain.step_s / gain.present_step_s) > gain.start_s;
}

}  // namespace motley
