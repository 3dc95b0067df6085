// GlooPeer: the messages to and from one rank, over a pair of Gloo. Gloo moves messages whose
// length both sides know, ends the process when one is longer than its receive, and can only be
// waited for by a blocked thread. So each pair of ranks is used as one ordered stream: a fixed
// header (tag, length), then the message, and the matching of tags is done here. A pair has three
// threads, asleep while nothing moves:
//   reader   takes headers, finds or makes the place for each message, receives it there
//   writer   sends what is queued, in the order of comm/transport/send_order.h
//   watcher  connects, then waits on a receive that nobody sends to. Gloo tells a lost connection
//            only to operations that did not begin yet; the watcher's is one, and wakes the others.
// Each pair has a context of its own, because one wait that times out closes all pairs of a
// context.
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

// Gloo writes to sockets without asking to be spared the signal. For each thread of it.
void block_sigpipe();

class GlooPeer {
 public:
  // Listens at once. `patience` and `early_bytes_max` as in TransportOptions. May throw what Gloo
  // throws.
  GlooPeer(const std::shared_ptr<gloo::transport::Device>& device,
           Rank self,
           Rank rank,
           int rank_count,
           Patience patience,
           std::uint64_t early_bytes_max);
  ~GlooPeer();
  GlooPeer(const GlooPeer&) = delete;
  GlooPeer& operator=(const GlooPeer&) = delete;

  [[nodiscard]] std::vector<char> address() const { return pair_->address().bytes(); }

  void start_connecting(std::vector<char> peer_address);
  // kPeer when it does not connect in time; it is lost then.
  Result<void> wait_connected(Deadline deadline);

  // Any thread may call these two, as those of Transport.
  Pending send(Tag tag, Buffer buffer);
  Pending recv(Tag tag, Buffer buffer);

  // Looks whether a message stands still. To be called twice a second: a wait of Gloo's own cannot
  // be prolonged, as one that runs out closes the pair.
  void tick();

  // Ends everything with this peer. The first cause stays.
  void lose(const std::string& cause);

 private:
  enum Slot : std::uint64_t { kHeaderSlot, kMessageSlot, kWatchSlot };

  // Before each message. Native byte order: Gloo itself joins only machines of one kind.
  struct MessageHeader {
    std::uint64_t tag;
    std::uint64_t bytes;  // of the message; the sender's rank in a hello
  };

  struct Operation {
    Buffer buffer;
    std::shared_ptr<Completion> completion = std::make_shared<Completion>();
  };

  // What one of the threads waits on, and how long it may.
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

  // --- Gloo, whose exceptions end here ---

  // Both return false when the peer is lost, with the reason in loss().
  bool receive(void* bytes, std::size_t count, Slot slot, Deadline deadline);
  bool send_whole(void* bytes, std::size_t count, Slot slot);
  bool enter(Wait& current, gloo::transport::UnboundBuffer* buffer, Deadline deadline);
  template <class Transfer>
  bool leave(Wait& current, const Transfer& transfer);
  void close_connection();
  [[nodiscard]] std::string loss();

  const Rank self_;
  const Rank rank_;
  const Patience patience_;
  const std::shared_ptr<gloo::transport::Context> context_;
  gloo::transport::Pair* pair_;  // owned by the context

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool connected_ = false;
  std::string lost_;  // why; empty while the peer is there
  SendOrder<std::pair<Tag, Operation>> sends_;
  std::map<Tag, std::deque<Operation>> receives_;
  std::map<Tag, std::deque<Buffer>> early_;  // came before their receive
  EarlyShare early_share_;
  Wait reading_;  // of the reader
  Wait writing_;  // of the writer

  // The watcher starts the other two, so it is joined first.
  std::thread watcher_;
  std::thread reader_;
  std::thread writer_;
};

}  // namespace motley
