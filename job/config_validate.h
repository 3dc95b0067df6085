// What no single key of a configuration shows. Private to job/.
#pragma once

#include <optional>
#include <string>

#include "job/config.h"

namespace motley {

struct Conflict {
  std::string key;    // the one to change first
  std::string other;  // that it does not go with; "" where it is wrong by itself
  std::string problem;
  std::string cause;
  std::string remedy;
};

// The first pair of keys that do not go together, in the order of the documentation.
[[nodiscard]] std::optional<Conflict> find_conflict(const Config& config);

}  // namespace motley
