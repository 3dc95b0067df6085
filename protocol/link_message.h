// A rank's report of the peers that it cannot connect to while its group forms.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"

namespace motley {

inline constexpr const char* kUnreachedEvent = "unreached";

// The result of connecting to a peer's address.
enum class LinkState { kAnswers, kSilent, kRefused, kNoRoute };

struct UnreachedPeer {
  Rank rank;
  std::string address;  // "10.0.0.2:40123"
  LinkState state = LinkState::kSilent;
  std::string words;   // the system's message, if any
  double since_s = 0;  // how long the state has lasted

  friend bool operator==(const UnreachedPeer&, const UnreachedPeer&) = default;
};

// Peers that are not listed are connected, or nothing is known about them yet.
[[nodiscard]] Json unreached_event(const std::vector<UnreachedPeer>& peers);
// kCorrupt for an event that a rank of this version does not send.
[[nodiscard]] Result<std::vector<UnreachedPeer>> read_unreached_event(const Json& event,
                                                                      const std::string& source);

}  // namespace motley
