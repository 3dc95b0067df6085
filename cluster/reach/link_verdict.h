// What follows from the ranks' reports of peers that they cannot connect to, from both ends of each
// link: which machines cannot connect to each other, and which of them is the cause. Pure
// functions; the time is passed in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/reach/peer_fault.h"
#include "protocol/link_message.h"

namespace motley {

// A rank as far as its links tell of it.
struct LinkEnd {
  std::string machine;
  bool is_heard = true;                  // the launcher has heard of it within kLinkSilent_s
  std::vector<UnreachedPeer> unreached;  // as it has reported last
};

// How long attempts in vain must go on to count: connections between ranks of a LAN take
// milliseconds, and one packet may be lost.
inline constexpr double kLinkRefused_s = 1;
inline constexpr double kLinkSilent_s = 4;

// Where two ranks certainly cannot connect: neither reaches the other, or one does not and the
// other is not heard of. The error is kPeer, with addresses, ports and what came of each direction;
// the fault is of the machine that alone is part of all such pairs, else of those that are part of
// the most. Nothing where no pair is certain. `ends`: [Rank]
[[nodiscard]] std::optional<PeerFailure> link_verdict(std::span<const LinkEnd> ends);

// For people, of ranks that were connected in the end: those that one end could not connect to at
// first, as `unreached` has them.
[[nodiscard]] std::vector<std::string> one_way_lines(std::span<const LinkEnd> ends);

}  // namespace motley
