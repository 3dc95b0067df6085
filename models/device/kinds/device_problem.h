// A problem with a device, for messages.
#pragma once

#include <string>

namespace motley {

struct DeviceProblem {
  std::string cause;
  std::string remedy;
  // Whether the machine has such a device: then the user probably wants to fix the problem.
  bool is_shown = false;

  friend bool operator==(const DeviceProblem&, const DeviceProblem&) = default;
};

}  // namespace motley
