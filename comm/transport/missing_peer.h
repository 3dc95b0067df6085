// A peer that is not connected yet, as far as this end can tell why.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace motley {

// What comes of connecting to its address.
enum class ConnectState {
  kAnswers,  // something there takes the connection and has not authenticated
  kSilent,   // nothing comes back
  kRefused,  // its machine, or a firewall before it, says no
  kNoRoute,  // this system or a router knows no way there, or may not use it
};

struct MissingPeer {
  Rank rank;
  std::string address;  // "10.0.0.2:40123"
  ConnectState state = ConnectState::kSilent;
  std::string words;   // the system's, where it has some
  double since_s = 0;  // for how long it has been so
};

// Called by Transport::connect(), on its thread, once a second while peers are missing, with those
// of which there is something to tell; with none, once, after it was called with some.
using OnMissing = std::function<void(const std::vector<MissingPeer>&)>;

}  // namespace motley
