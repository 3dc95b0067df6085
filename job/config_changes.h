// What two configurations of one run differ in, as far as the run's numbers depend on it.
#pragma once

#include <string>
#include <vector>

#include "job/config.h"

namespace motley {

struct ConfigChange {
  std::string key;  // "train.lr"
  std::string from;
  std::string to;  // both as TOML

  friend bool operator==(const ConfigChange&, const ConfigChange&) = default;
};

// The keys on which a run's numbers depend from its next step on, with other values in `to`, in the
// order of the documentation. Not among them: where and how the run computes, sends and saves; how
// often it evaluates; the place of its data, whose content tells whether it is the same; and what
// only its start read. A key that a later version adds counts until it is listed as one of these.
[[nodiscard]] std::vector<ConfigChange> result_changes(const Config& from, const Config& to);

}  // namespace motley
