// Checks of combinations of keys. Private to run_config/.
#pragma once

#include <optional>
#include <string>

#include "run_config/config.h"

namespace motley {

struct Conflict {
  std::string key;    // the one to change first
  std::string other;  // the other one; "" if the first is wrong by itself
  std::string problem;
  std::string cause;
  std::string remedy;
};

// The first conflict between keys, in the order of the documentation.
[[nodiscard]] std::optional<Conflict> find_conflict(const Config& config);

}  // namespace motley
