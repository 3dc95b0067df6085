#include "cluster/recover/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace motley {
namespace {

bool may_not_happen_again(const Setback& setback) {
  return setback.code == ErrorCode::kPeer ||
         (setback.code == ErrorCode::kInternal && setback.has_trained);
}

int count_in_a_row(std::span<const Setback> setbacks) {
  int count = 0;
  for (auto it = setbacks.rbegin(); it != setbacks.rend(); ++it) {
    ++count;
    if (it->has_saved) break;
  }
  return count;
}

}  // namespace

Decision decide(double now_s,
                std::span<const Member> members,
                std::span<const Setback> setbacks,
                const RecoveryRules& rules) {
  const Setback& last = setbacks.back();
  if (rules.restarts == 0 || !may_not_happen_again(last)) return {};
  const int row = count_in_a_row(setbacks);
  if (row > rules.restarts) {
    return {.reason = fmt::format("it was started again {} times without reaching a new checkpoint",
                                  rules.restarts)};
  }
  Decision decision{.move = NextMove::kGoOn, .restart = row};
  for (const Member& member : members) {
    if (!member.trouble.empty()) decision.without.push_back(member.machine);
  }
  if (!members.empty() && decision.without.size() == members.size()) {
    if (now_s - last.at_s > rules.silence_max_s) return {.reason = "no machine answers any more"};
    return {.move = NextMove::kAskAgain, .wait_s = rules.ask_again_s};
  }
  if (row > 1) {
    const double after_s =
        std::min(rules.wait_s * std::pow(RecoveryRules::kLonger, row - 2), rules.longest_wait_s);
    decision.wait_s = std::max(0.0, last.at_s + after_s - now_s);
  }
  return decision;
}

}  // namespace motley
