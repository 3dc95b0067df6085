// Transport: moves whole messages between the ranks of one epoch. The narrow seam under which
// in-process, UCX, Gloo and TCP live; framing, checks and meaning are above it
// (comm/frames/frame_link.h).
//
// Messages between one pair of ranks with one tag arrive in the order they were sent. A receive is
// posted with a buffer as large as the largest legal message; a longer one is an error, never an
// overrun. send() and recv() return at once and may be called from any thread; progress is made by
// the transport's own threads, which sleep while nothing moves. When a peer is lost, every
// operation with it ends with kPeer naming the rank.
//
// A send is done when its buffer can be used again, which may be before the peer has the message.
// Destroying a transport is leaving: what is under way is dropped and the peers see this rank as
// lost. Who needs the last message to arrive waits for an answer to it first. After a wait that
// timed out the receive is still posted and would take a later message of its tag: the epoch is
// over.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/buffer.h"
#include "comm/transport/early_share.h"
#include "comm/transport/pending.h"

namespace motley {

// Callers use the low 48 bits, and not all of them set; the rest belongs to the transports.
using Tag = std::uint64_t;
inline constexpr int kTagBits = 48;
inline constexpr Tag kTagsEnd = (Tag{1} << kTagBits) - 1;  // REQUIRES: tag < kTagsEnd
// Of what is long and not waited for yet: gloo and tcp send whatever lacks this bit before all that
// has it, but for the message (gloo) or the piece (tcp) that they are in the midst of.
inline constexpr Tag kBulkTag = Tag{1} << (kTagBits - 1);
// By which the ends of a connection greet each other, where the transport underneath knows only
// tags.
inline constexpr Tag kHelloTag = kTagsEnd;

class Transport {
 public:
  virtual ~Transport() = default;

  // Returns what peers need to reach this rank, a printable text that goes through the launcher.
  [[nodiscard]] virtual std::string address() const = 0;

  // Connects to every other rank. addresses: [Rank], this rank's own included. Called once, before
  // the first send or receive. kPeer, naming the rank, when one cannot be reached in time; at once
  // kUnauthorised when one answers and does not accept the secret.
  [[nodiscard]] virtual Result<void> connect(const std::vector<std::string>& addresses,
                                             Deadline deadline) = 0;

  // Sends buffer.message() to another rank. The pending gives the buffer back.
  [[nodiscard]] virtual Pending send(Rank to, Tag tag, Buffer buffer) = 0;

  // Receives into buffer.message_room(); on success payload_bytes() is what came. kCorrupt for a
  // message that is longer than the room or shorter than a header.
  [[nodiscard]] virtual Pending recv(Rank from, Tag tag, Buffer buffer) = 0;

  // Returns whether this rank and the peer may show each other memory
  // (comm/transport/shared_memory.h): they are one process, or of one machine and share memory
  // already. The peer gives the same answer. Any thread may ask, after connect().
  [[nodiscard]] virtual bool shares_memory(Rank /*peer*/) const { return false; }
};

struct TransportOptions {
  std::string kind = "auto";  // auto | ucx | gloo | tcp
  Rank rank;
  int rank_count = 1;
  std::string bind_address;  // numeric; "" = loopback, for ranks of one machine
  std::string interface;     // "" = the interface that holds bind_address
  Patience patience = 60;    // longest that a message, once begun, may stand still (gloo, tcp)
  std::uint32_t epoch = 1;   // tcp: ranks of another epoch are refused
  // gloo, tcp: the most memory that messages of one peer take before they are asked for; more of
  // them wait in the network.
  std::uint64_t early_bytes_max = kEarlyBytesMax;
  // tcp: kSecretBytes (base/secret.h) that every rank of the launch has and nobody else: only
  // holders of it can connect, and connections are encrypted. "" = neither; then the caller
  // answers for it that everybody who reaches the address is trusted.
  std::string secret;
  // Two ranks whose connection has one address at both ends are on one machine, and what they say
  // never leaves it. true: it takes the short way, unencrypted by tcp once both have shown the
  // secret, through memory that they share where they can. false: as between machines. Ranks that
  // differ in this go the long way. tcp alone: ucx and gloo carry everything.
  bool local_shortcut = true;
};

}  // namespace motley
