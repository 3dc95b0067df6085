// What a rank tells of peers that it cannot connect to, while its group meets.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"

namespace motley {

inline constexpr const char* kUnreachedEvent = "unreached";

// What came of connecting to a peer's address.
enum class LinkState { kAnswers, kSilent, kRefused, kNoRoute };

struct UnreachedPeer {
  Rank rank;
  std::string address;  // "10.0.0.2:40123"
  LinkState state = LinkState::kSilent;
  std::string words;   // the system's, where it has some
  double since_s = 0;  // for how long it has been so

  friend bool operator==(const UnreachedPeer&, const UnreachedPeer&) = default;
};

// Peers that it does not name are connected, or nothing is known of them yet.
[[nodiscard]] Json unreached_event(const std::vector<UnreachedPeer>& peers);
// kCorrupt for what a rank of this version does not send.
[[nodiscard]] Result<std::vector<UnreachedPeer>> read_unreached_event(const Json& event,
                                                                      const std::string& source);

}  // namespace motley
