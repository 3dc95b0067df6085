// A peer that is not connected yet, and the reason as far as this end knows it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace motley {

// The result of connecting to its address.
enum class ConnectState {
  kAnswers,  // the connection is accepted, but the other end has not authenticated
  kSilent,   // no answer
  kRefused,  // rejected by its machine or a firewall
  kNoRoute,  // no route, or not permitted
};

struct MissingPeer {
  Rank rank;
  std::string address;  // "10.0.0.2:40123"
  ConnectState state = ConnectState::kSilent;
  std::string words;   // the system's message, if any
  double since_s = 0;  // how long the state has lasted
};

// Called by Transport::connect(), on its thread, once a second while peers are missing, with those
// whose state is known; once with an empty list, after a call with a non-empty one.
using OnMissing = std::function<void(const std::vector<MissingPeer>&)>;

}  // namespace motley
