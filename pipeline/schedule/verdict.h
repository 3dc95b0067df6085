// Verdict: what came of trying an action of a schedule without computing. Both empty: it ran.
#pragma once

#include <string>
#include <utility>

namespace motley {

struct Verdict {
  std::string wait;   // what it has to wait for
  std::string wrong;  // the rule that it breaks, so that it can never run

  [[nodiscard]] bool ran() const { return wait.empty() && wrong.empty(); }
};

[[nodiscard]] inline Verdict must_wait_for(std::string what) {
  return {std::move(what), ""};
}

[[nodiscard]] inline Verdict breaks(std::string rule) {
  return {"", std::move(rule)};
}

}  // namespace motley
