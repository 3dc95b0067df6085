// The differences between two configurations of one run that affect its results.
#pragma once

#include <string>
#include <vector>

#include "run_config/config.h"

namespace motley {

struct ConfigChange {
  std::string key;  // "train.lr"
  std::string from;
  std::string to;  // both in TOML notation

  friend bool operator==(const ConfigChange&, const ConfigChange&) = default;
};

// The keys with another value in `to` that affect the run's results from its next step on, in the
// order of the documentation. Excluded are: where and how the run computes, communicates and saves;
// how often it evaluates; the location of its data, which are identified by their content; and keys
// that only the start reads. A key of a later version counts until it is listed as one of these.
[[nodiscard]] std::vector<ConfigChange> result_changes(const Config& from, const Config& to);

}  // namespace motley
