// TcpPeer: the messages to and from one rank, over the stream that joins the two. Sends a beat
// where nothing else moves; a peer of whom nothing is heard for some seconds is lost, whether it is
// frozen or the cable was pulled: the system alone would notice neither for a quarter of an hour.
//
// send() and recv() may be called from any thread; the others come from the one that runs the
// io_context. Whoever holds mutex_ reads and writes. A small message is written by the thread that
// sends it, if the mutex is free, because waking another one costs more than the write; a large one
// is left to the I/O thread, so that a thread that computes encrypts and copies no megabytes. A
// sender never waits for the mutex. Locks are taken in this order: mutex_, then those of mailbox,
// queue, completions and turns, none of which calls back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "comm/tcp/link_pace.h"
#include "comm/tcp/tcp_stream.h"
#include "comm/transport/mailbox.h"
#include "comm/transport/message_stream.h"

namespace motley {

class TcpPeer {
 public:
  // patience and early_bytes_max: as in TransportOptions. `turns`: of all peers that are reached
  // through the network.
  TcpPeer(boost::asio::io_context& io,
          Rank rank,
          SendTurns& turns,
          Patience patience,
          std::uint64_t early_bytes_max);

  [[nodiscard]] Pending send(Tag tag, Buffer buffer);
  [[nodiscard]] Pending recv(Tag tag, Buffer buffer);

  // The stream, after both ends have shown who they are. Called once.
  void join(TcpStream stream);
  // Looks for signs of life and gives them. To be called twice a second. `overslept`: this process
  // itself did nothing for a while, so that silence is no sign of the peer's.
  void tick(SteadyClock::time_point now, bool overslept);

  // It need not wait for its turn any more.
  void go_on() { write_later(); }

  // Of what was sent through the network.
  [[nodiscard]] SendTurns::Sent sent();
  // Ends the stream and every operation: this rank leaves. No more is called afterwards.
  void leave();

 private:
  // Both run on the I/O thread, where they take their turn.
  void read_later();
  void write_later();

  // REQUIRES of all below: mutex_ is held.
  void read();
  void write();
  // Writes until nothing is left to write, the socket takes no more, or the next message is not
  // within `bytes_max` of all that it wrote; then the I/O thread goes on.
  void write_up_to(std::size_t bytes_max);
  void wait_readable();
  void wait_writable();
  void wait_for_bell();
  // Makes what an urgent message may have to wait for as short as the link is slow.
  void keep_pace(SteadyClock::time_point now);
  void lose(const std::string& cause);

  boost::asio::io_context& io_;
  const Patience patience_;
  Mailbox mailbox_;  // recv() needs no mutex_
  SendQueue queue_;  // nor does push()
  SendTurns& turns_;

  std::mutex mutex_;
  // Guarded by mutex_, with the reader's side of the mailbox and the writer's of the queue.
  MessageReader reader_;
  std::optional<TcpStream> stream_;  // while the peer is there

  bool awaits_readable_ = false;
  bool awaits_writable_ = false;
  bool awaits_bell_ = false;     // which ends both
  bool awaits_receive_ = false;  // nothing is read before one is posted

  LinkPace pace_;
  SendTurns::Sent sent_;  // as last seen

  // These are as of the last tick that saw a difference.
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  SteadyClock::time_point received_at_;
  SteadyClock::time_point sent_at_;
  Deadline stuck_until_ =
      patience_.deadline();  // moved on when nothing that is to leave stands still
};

}  // namespace motley
