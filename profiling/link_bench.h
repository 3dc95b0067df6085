// Measures the link to one other rank on the real transport.
//
// One end measures and the other serves: it answers every message with a small one until an empty
// message. Both use bare transport messages without FrameLink's checksum, whose cost is included in
// that of the codecs.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/transport.h"

namespace motley {

struct LinkSample {
  double bandwidth_bytes_per_s = 0;  // median over large messages, without the latency
  double latency_s = 0;              // half of the median round trip of small messages
  double jitter_p95_s = 0;           // half of the 95th percentile's distance from that median
  double send_cpu_s_per_byte = 0;    // of this process while sending large messages
};

// Measures from this rank to `peer`, which must serve meanwhile; takes about `seconds`. kPeer if
// the peer is lost or an answer takes longer than half a minute.
[[nodiscard]] Result<LinkSample> measure_link(Transport& transport, Rank peer, double seconds);

// The measurement at one end of a pair while both send to each other.
struct BidirectionalSample {
  double alone_s = 0;     // time of one of this end's messages without other traffic
  double together_s = 0;  // median time from the common start to the arrival of the other's message
};

// Called by both ends, one of them as the leader; takes about `seconds`. `alone`: the result of
// measure_link() from here to the peer. kPeer as above.
[[nodiscard]] Result<BidirectionalSample> measure_bidirectional(
    Transport& transport, Rank peer, bool is_leader, const LinkSample& alone, double seconds);

// Serves until the peer has measured. Returns this process's processor seconds per received byte of
// large messages. kPeer as above.
[[nodiscard]] Result<double> serve_link(Transport& transport, Rank peer);

}  // namespace motley
