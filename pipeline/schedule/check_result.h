// CheckResult: the result of trying an action of a schedule without computing. Both empty: it ran.
#pragma once

#include <string>
#include <utility>

namespace motley {

struct CheckResult {
  std::string wait;   // the reason to wait
  std::string wrong;  // the violated rule; the action can never run

  [[nodiscard]] bool ran() const { return wait.empty() && wrong.empty(); }
};

[[nodiscard]] inline CheckResult must_wait_for(std::string what) {
  return {std::move(what), ""};
}

[[nodiscard]] inline CheckResult breaks(std::string rule) {
  return {"", std::move(rule)};
}

}  // namespace motley
