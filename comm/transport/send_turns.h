// SendTurns: in which order the large messages of one rank leave it, when they go to several peers
// over connections of their own. Left alone, the connections would divide what the machine can
// send, and each of two messages would take as long as both. In turns, as the planner's simulator
// has it too (partitioner/simulate/link_queue.h), the first takes half of that and the second no
// longer: urgent messages in the order in which they were sent, whoever they go to; bulk while none
// of them waits. A turn lasts until all but the last kHandOver of a message is there: the system
// takes much more at once than the link does.
//
// A peer may be slower than what the machine can send, by a link of its own or because it takes
// nothing. In its turn the machine's own link is not full, so nobody waits for it: while anyone
// waits, it is measured what leaves altogether in whose turn, and a peer with less than kFull of
// the most seen is passed over for kPassedOver. It sends as before, and the next has its turn.
//
// Bulk waits for room too: of what is on the way, an urgent message that comes waits for all, and
// on a connection that always has more a network keeps as much as it can.
//
// Any thread may call. Its lock is taken last, and it calls back without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace motley {

class SendTurns {
 public:
  // Whoever is behind less than this is not worth a turn.
  static constexpr std::size_t kMessageBytesMin = std::size_t{16} << 10;
  static constexpr double kFull = 0.6;
  static constexpr std::chrono::seconds kPassedOver{2};
  static constexpr std::chrono::milliseconds kBetweenLooks{5};
  // Of the rate that is measured, so that the link has work until the next look.
  static constexpr std::chrono::milliseconds kHandOver{8};
  static constexpr std::uint64_t kHandOverBytesMin = std::uint64_t{64} << 10;

  // `look_soon`: called when look() is due, because somebody began to wait or need not wait any
  // more.
  SendTurns(int rank_count, std::function<void()> look_soon);

  // An urgent message of at least kMessageBytesMin goes to the end of the queue of this peer.
  void enter(Rank to);
  // The first of them has been handed to the system.
  void leave(Rank to);
  // All of them are gone, with the peer.
  void leave_all(Rank to);

  enum class Answer { kYes, kNotItsTurn, kNoRoom };
  // Whether the first of them, or a piece of bulk, may begin. If not, the peer waits until a look()
  // returns it, and asks again.
  [[nodiscard]] Answer may_begin_urgent(Rank to);
  [[nodiscard]] Answer may_begin_bulk(Rank to, std::uint64_t bytes);

  struct Look {
    std::vector<Rank> released;  // they need not wait
    bool anyone_waits = false;   // look again after kBetweenLooks
  };

  // Of one peer: the bytes that it is known to have, so far, and those on the way to it.
  struct Sent {
    std::uint64_t acknowledged_bytes = 0;
    std::uint64_t on_the_way_bytes = 0;
    // Of bulk on the way; nothing as long as nobody knows what the link takes.
    std::optional<std::uint64_t> room_bytes;
  };

  // sent: [Rank]; what was acknowledged is never less than before.
  [[nodiscard]] Look look(SteadyClock::time_point now, std::span<const Sent> sent);

 private:
  struct Peer {
    std::deque<std::uint64_t> places;  // in the order of enter(), of all peers together
    bool is_waiting = false;
    std::uint64_t bulk_bytes = 0;             // since the last look, or on the way then
    std::optional<std::uint64_t> room_bytes;  // for them
    // Of its turns since it was last judged.
    std::uint64_t moved_bytes = 0;
    SteadyClock::duration turns{};
    int slow_in_a_row = 0;  // judgements
    std::optional<SteadyClock::time_point> passed_over_until;
  };

  // All by index; they REQUIRE that mutex_ is held.
  // The peer whose message is the first of those that wait to be sent.
  [[nodiscard]] std::optional<std::size_t> first() const;
  // The peer that fills the link: which is sent to, or whose message has not all got there.
  [[nodiscard]] std::optional<std::size_t> whose_turn() const;
  enum class Kind { kUrgent, kBulk };
  [[nodiscard]] Answer may(std::size_t peer, Kind kind) const;
  // The answer for a peer that waits if it is not kYes. Unlike the others, takes mutex_ itself.
  [[nodiscard]] Answer ask(Rank to, Kind kind, std::uint64_t bytes);
  void judge(Peer& peer, SteadyClock::time_point now);

  const std::function<void()> look_soon_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Peer> peers_;  // [Rank]
  std::uint64_t next_place_ = 0;
  std::optional<std::size_t> leaving_;                // the peer whose message was handed over last
  int waiting_ = 0;                                   // peers
  double bytes_per_s_ = 0;                            // the most seen
  std::optional<std::size_t> turn_of_;                // since the last look
  std::optional<SteadyClock::time_point> looked_at_;  // while somebody waits
  std::uint64_t acknowledged_bytes_ = 0;              // then, of all
};

}  // namespace motley
