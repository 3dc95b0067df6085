// GlooPeer: the messages to and from one rank, over a pair of Gloo. Gloo requires both sides to
// know a message's length, aborts the process if one is longer than its receive, and can only be
// waited for by a blocked thread. So each pair of ranks is used as one ordered stream of a fixed
// header (tag, length) and the message, and tags are matched here. A pair has three threads, which
// sleep while idle:
//   reader   receives headers, finds or allocates the buffer of each message, receives it there
//   writer   sends queued messages, in the order of comm/transport/send_order.h
//   watcher  connects, then waits on a receive that is never sent to. Gloo reports a lost
//            connection only to operations that have not begun, such as the watcher's, which then
//            ends the others.
// Each pair has its own context, because one wait that times out closes all pairs of a context.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/buffer.h"
#include "comm/transport/pending.h"
#include "comm/transport/send_order.h"
#include "comm/transport/transport.h"

namespace motley {

// Blocks SIGPIPE in the calling thread, because Gloo writes to sockets without MSG_NOSIGNAL. Must
// be called in each thread that uses Gloo.
void block_sigpipe();

class GlooPeer {
 public:
  // Starts to listen. `stall_timeout` and `unexpected_bytes_max` as in TransportOptions. May throw
  // Gloo's exceptions.
  GlooPeer(const std::shared_ptr<gloo::transport::Device>& device,
           Rank self,
           Rank rank,
           int rank_count,
           StallTimeout stall_timeout,
           std::uint64_t unexpected_bytes_max);
  ~GlooPeer();
  GlooPeer(const GlooPeer&) = delete;
  GlooPeer& operator=(const GlooPeer&) = delete;

  [[nodiscard]] std::vector<char> address() const { return pair_->address().bytes(); }

  void start_connecting(std::vector<char> peer_address);
  // kPeer if the connection is not established in time; the peer is then lost.
  Result<void> wait_connected(Deadline deadline);

  // Any thread may call these two, as in Transport.
  Pending send(Tag tag, Buffer buffer);
  Pending recv(Tag tag, Buffer buffer);

  // Loses the peer if a message is stalled. Must be called twice a second: Gloo's own time-outs
  // cannot be extended, and one that expires closes the pair.
  void tick();

  // Ends all operations with this peer. The first cause is retained.
  void lose(const std::string& cause);

 private:
  enum Slot : std::uint64_t { kHeaderSlot, kMessageSlot, kWatchSlot };

  // Precedes each message. Native byte order: Gloo itself connects only machines of one
  // architecture.
  struct MessageHeader {
    std::uint64_t tag;
    std::uint64_t bytes;  // length of the message; in a hello, the sender's rank
  };

  struct Operation {
    Buffer buffer;
    std::shared_ptr<Completion> completion = std::make_shared<Completion>();
  };

  // The buffer that one of the threads waits for, and the wait's deadline.
  struct Wait {
    gloo::transport::UnboundBuffer* buffer = nullptr;
    Deadline deadline = Deadline::after_s(0);
  };

  struct Place {
    Buffer buffer;
    std::shared_ptr<Completion> completion;
    bool asked_for = false;
  };

  void deliver(Operation receive, std::span<const std::byte> message) const;

  // --- the three threads ---

  void watch(const std::vector<char>& peer_address);
  void read();
  bool read_message(const MessageHeader& header);
  std::optional<Place> place_for(const MessageHeader& header);
  void keep(Tag tag, Buffer message);
  void write();
  std::optional<std::pair<Tag, Operation>> next_send();

  // --- wrappers of Gloo, which catch its exceptions ---

  // Both return false if the peer is lost; loss() has the reason.
  bool receive(void* bytes, std::size_t count, Slot slot, Deadline deadline);
  bool send_whole(void* bytes, std::size_t count, Slot slot);
  bool enter(Wait& current, gloo::transport::UnboundBuffer* buffer, Deadline deadline);
  template <class Transfer>
  bool leave(Wait& current, const Transfer& transfer);
  void close_connection();
  [[nodiscard]] std::string loss();

  const Rank self_;
  const Rank rank_;
  const StallTimeout stall_timeout_;
  const std::shared_ptr<gloo::transport::Context> context_;
  gloo::transport::Pair* pair_;  // owned by the context

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool connected_ = false;
  std::string lost_;  // the reason; empty while connected
  SendOrder<std::pair<Tag, Operation>> sends_;
  std::map<Tag, std::deque<Operation>> receives_;
  std::map<Tag, std::deque<Buffer>> early_;  // arrived before their receive
  UnexpectedMessageQuota unexpected_quota_;
  Wait reading_;  // the reader's
  Wait writing_;  // the writer's

  // The watcher starts the other two, so it is joined first.
  std::thread watcher_;
  std::thread reader_;
  std::thread writer_;
};

}  // namespace motley
