// TcpPeer: the messages to and from one rank, over the stream that connects the two. Sends a
// heartbeat while idle; a peer that is silent for longer than TransportOptions::patience_s is lost.
// This detects a frozen peer and a cut cable, which the system alone would not notice for a quarter
// of an hour. A shorter interruption only delays the messages.
//
// send() and recv() may be called from any thread; all other functions run on the io_context's
// thread. A thread must hold mutex_ to read or write the stream. A small message is written by the
// sending thread if the mutex is free, because waking another thread costs more than the write. A
// large one is left to the I/O thread, so that a compute thread does not encrypt and copy
// megabytes. A sender never waits for the mutex. Lock order: mutex_, then those of mailbox, queue,
// completions and turns, none of which calls back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "comm/tcp/bandwidth_estimate.h"
#include "comm/tcp/tcp_stream.h"
#include "comm/transport/mailbox.h"
#include "comm/transport/message_stream.h"
#include "comm/transport/transport.h"

namespace motley {

class TcpPeer {
 public:
  // `egress`: shared by all peers that are reached through the network. `options`: for
  // stall_timeout, patience_s and unexpected_bytes_max.
  TcpPeer(boost::asio::io_context& io,
          Rank rank,
          EgressScheduler& egress,
          const TransportOptions& options);

  [[nodiscard]] Pending send(Tag tag, Buffer buffer);
  [[nodiscard]] Pending recv(Tag tag, Buffer buffer);

  // Takes the stream after both ends are authenticated. Called once.
  void join(TcpStream stream);
  // Sends heartbeats and checks the peer's. Must be called twice a second. `overslept`: this
  // process itself was stopped for a while, so the peer's silence proves nothing.
  void tick(SteadyClock::time_point now, bool overslept);

  // Continues to send after EgressScheduler has released the peer.
  void proceed() { write_later(); }

  // The bytes sent over the network.
  [[nodiscard]] EgressScheduler::Sent sent();
  // Ends the stream and every operation: this rank leaves. No function is called afterwards.
  void leave();

 private:
  // Both schedule the operation on the I/O thread.
  void read_later();
  void write_later();

  // All functions below REQUIRE: mutex_ is held.
  void read();
  void write();
  // Writes until the queue is empty, the socket is blocked, or the next message does not fit into
  // `bytes_max` over all writes of this call; the I/O thread then continues.
  void write_up_to(std::size_t bytes_max);
  void wait_readable();
  void wait_writable();
  void arm_notification();
  // Adapts the piece size and the send buffer to the link's bandwidth, which bounds the delay of
  // urgent messages.
  void update_bandwidth(SteadyClock::time_point now);
  void lose(const std::string& cause);

  boost::asio::io_context& io_;
  const StallTimeout stall_timeout_;
  const double patience_s_;
  Mailbox mailbox_;  // recv() needs no mutex_
  SendQueue queue_;  // push() needs none either
  EgressScheduler& egress_;

  std::mutex mutex_;
  // Guarded by mutex_, as are the reader's side of the mailbox and the writer's side of the queue.
  MessageReader reader_;
  std::optional<TcpStream> stream_;  // while connected

  bool awaits_readable_ = false;
  bool awaits_writable_ = false;
  bool awaits_notification_ = false;  // ends both waits
  bool awaits_receive_ = false;       // reading is suspended until a receive is posted

  BandwidthEstimate bandwidth_;
  EgressScheduler::Sent sent_;  // at the last call of sent()

  // At the last tick that saw a change.
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  SteadyClock::time_point received_at_;
  SteadyClock::time_point sent_at_;
  Deadline stuck_until_ =
      stall_timeout_
          .deadline();  // extended while sending makes progress or there is nothing to send
};

}  // namespace motley
