// The machines that caused the failure of a group of workers, as input for the restart decision.
// The message for the user is in the error beside it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

struct PeerFault {
  // Each of them is necessary for the failure; empty: unknown.
  std::vector<std::string> machines;
  bool cannot_connect = false;  // they were up, but could not connect to each other
  bool own_absence = false;     // the launcher was stopped, or its machine slept
};

struct PeerFailure {
  Error error;
  PeerFault fault;
};

}  // namespace motley
