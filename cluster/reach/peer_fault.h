// What is known of the machines by which a group of workers came to its end, for whoever decides
// how to go on. What people are told of it is in the error beside it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

struct PeerFault {
  // Without any one of these it would not have happened; empty: not known.
  std::vector<std::string> machines;
  bool cannot_connect = false;  // they were up, and connections between them did not come about
  bool own_absence = false;     // this program was stopped, or its machine slept
};

struct PeerFailure {
  Error error;
  PeerFault fault;
};

}  // namespace motley
