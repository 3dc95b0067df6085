// How fast the link to one other rank is, by the real transport.
//
// One end measures and the other serves: it answers every message with a small one until an empty
// message ends it. Both use bare transport messages, without FrameLink's checksum, which the cost
// of the codecs holds already.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/transport.h"

namespace motley {

struct LinkSample {
  double bandwidth_bytes_per_s = 0;  // median over large messages, without the latency
  double latency_s = 0;              // half of the median round trip of small messages
  double jitter_p95_s = 0;           // half of how far the 95th percentile is above that median
  double send_cpu_s_per_byte = 0;    // of this process while it sent large messages
};

// From this rank to `peer`, which serves meanwhile; takes about `seconds`. kPeer when the peer is
// lost or an answer takes longer than half a minute.
[[nodiscard]] Result<LinkSample> measure_link(Transport& transport, Rank peer, double seconds);

// What one end of a pair saw while both sent to each other at once.
struct BothWays {
  double alone_s = 0;     // that one of this end's messages takes when nothing else is under way
  double together_s = 0;  // median time from when both begin until the other's message is there
};

// Both ends call it, one of them as the leader; takes about `seconds`. `alone`: what measure_link()
// found from here to the peer. kPeer as above.
[[nodiscard]] Result<BothWays> measure_both_ways(
    Transport& transport, Rank peer, bool is_leader, const LinkSample& alone, double seconds);

// Serves until the peer has measured. Returns this process's processor seconds per byte of the
// large messages that came. kPeer as above.
[[nodiscard]] Result<double> serve_link(Transport& transport, Rank peer);

}  // namespace motley
