// Transport: moves whole messages between the ranks of one epoch. The narrow interface implemented
// by in-process, UCX, Gloo and TCP; framing, checks and meaning are above it
// (comm/frames/frame_link.h).
//
// Messages between one pair of ranks with one tag arrive in the order they were sent. A receive is
// posted with a buffer as large as the largest legal message; a longer one is an error, never an
// overrun. send() and recv() return at once and may be called from any thread; progress is made by
// the transport's own threads, which sleep while idle. When a peer is lost, every operation with it
// ends with kPeer naming the rank.
//
// A send is done when its buffer can be reused, which may be before the peer has the message.
// Destroying a transport leaves the group: pending operations are dropped, and the peers see this
// rank as lost. A rank that needs its last message to arrive must first wait for an answer to it.
// After a wait that timed out the receive is still posted and would take a later message of its
// tag: the epoch cannot continue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/buffer.h"
#include "comm/transport/pending.h"
#include "comm/transport/unexpected_message_quota.h"

namespace motley {

// Callers use the low 48 bits, and never all of them set; the rest is for the transports.
using Tag = std::uint64_t;
inline constexpr int kTagBits = 48;
inline constexpr Tag kTagsEnd = (Tag{1} << kTagBits) - 1;  // REQUIRES: tag < kTagsEnd
// For long messages that are not needed yet: gloo and tcp send all messages without this bit first,
// except for the message (gloo) or piece (tcp) in progress.
inline constexpr Tag kBulkTag = Tag{1} << (kTagBits - 1);
// Greets the other end of a connection, in transports whose library provides only tags.
inline constexpr Tag kHelloTag = kTagsEnd;

class Transport {
 public:
  virtual ~Transport() = default;

  // Returns the information with which peers reach this rank, as printable text for the launcher.
  [[nodiscard]] virtual std::string address() const = 0;

  // Connects to every other rank. addresses: [Rank], this rank's own included. Called once, before
  // the first send or receive. kPeer, naming the rank, when one cannot be reached in time; at once
  // kUnauthorised when one answers and rejects the secret.
  [[nodiscard]] virtual Result<void> connect(const std::vector<std::string>& addresses,
                                             Deadline deadline) = 0;

  // Sends buffer.message() to another rank. The pending returns the buffer.
  [[nodiscard]] virtual Pending send(Rank to, Tag tag, Buffer buffer) = 0;

  // Receives into buffer.message_space(); on success payload_bytes() is the received size. kCorrupt
  // for a message that is longer than the buffer or shorter than a header.
  [[nodiscard]] virtual Pending recv(Rank from, Tag tag, Buffer buffer) = 0;

  // Returns whether this rank and the peer can share memory (comm/transport/shared_memory.h): they
  // are one process, or on one machine and share memory already. The peer gives the same answer.
  // Any thread may ask, after connect().
  [[nodiscard]] virtual bool shares_memory(Rank /*peer*/) const { return false; }
};

struct TransportOptions {
  std::string kind = "auto";  // auto | ucx | gloo | tcp
  Rank rank;
  int rank_count = 1;
  std::string bind_address;         // numeric; "" = loopback, for ranks on one machine
  std::string interface;            // "" = the interface that holds bind_address
  StallTimeout stall_timeout = 60;  // stall timeout of a message that has begun (gloo, tcp)
  double patience_s = 20;           // a peer that is silent for longer is lost
  std::uint32_t epoch = 1;          // tcp: ranks of another epoch are refused
  // gloo, tcp: the memory budget for one peer's early messages, those without a posted receive;
  // further ones wait in the network.
  std::uint64_t unexpected_bytes_max = kUnexpectedBytesMax;
  // tcp: kSecretBytes (base/secret.h) that all ranks of the launch and no other processes have:
  // only holders can connect, and connections are encrypted. "" = neither; the caller then
  // guarantees that every process that can reach the address is trusted.
  std::string secret;
  // Two ranks whose connection has one address at both ends are on one machine, so their traffic
  // never leaves it. true: local mode, unencrypted by tcp once both are authenticated, and through
  // shared memory where possible. false: as between machines. If the two ranks differ, false
  // applies. tcp only: ucx and gloo carry everything themselves.
  bool local_shortcut = true;
};

}  // namespace motley
