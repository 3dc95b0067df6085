// Combines the ranks' reports of unreachable peers, from both ends of each link: which machines
// cannot connect to each other, and which of them is the cause. Pure functions; the time is passed
// in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/reach/peer_fault.h"
#include "protocol/link_message.h"

namespace motley {

// The links of one rank.
struct LinkEnd {
  std::string machine;
  bool is_heard = true;  // the launcher received an event from it within kLinkSilent_s
  std::vector<UnreachedPeer> unreached;  // its last report
};

// The time for which attempts must have failed to count. Connections between ranks of a LAN take
// milliseconds, and one packet may be lost.
inline constexpr double kLinkRefused_s = 1;
inline constexpr double kLinkSilent_s = 4;

// The failure if two ranks certainly cannot connect: neither reaches the other, or one does not and
// the other is not heard. The error is kPeer, with addresses, ports and the result of each
// direction. The fault names the machine that alone is part of all such pairs, else the machines
// that are part of the most. Nothing if no pair is certain. `ends`: [Rank]
[[nodiscard]] std::optional<PeerFailure> diagnose_link(std::span<const LinkEnd> ends);

// Messages for the user about ranks that are connected now: the attempts of one end that failed at
// first, from `unreached`.
[[nodiscard]] std::vector<std::string> one_way_lines(std::span<const LinkEnd> ends);

}  // namespace motley
