// SendTurns: the egress scheduler of one rank, which orders large messages to several peers on
// separate connections. Without it the connections share the machine's uplink, and each of two
// messages takes as long as both. With turns, as in the planner's simulator
// (partitioner/simulate/link_queue.h), the first takes half of that and the second no longer.
// Urgent messages leave in the order in which they were queued, to whichever peer; bulk only while
// none of them waits. A turn ends when the system has accepted the message. Some 100 KiB of it may
// still be buffered, which keeps the link busy.
//
// A peer may be slower than the machine's uplink, because of its own link or because it accepts no
// data. Its turns would not fill the uplink and must not delay other peers. So when a peer would
// wait for the first time, and then every kBetweenTries, a trial begins: all peers send at once,
// and the total rate is measured. A peer whose turns reach less than kFull of that rate is skipped
// for kPassedOver: it sends without turns, and the next peer gets its turn.
//
// Any thread may call. Its lock is taken last, and it calls back without holding it.
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
  // Shorter messages take no turns.
  static constexpr std::size_t kMessageBytesMin = std::size_t{16} << 10;
  static constexpr double kFull = 0.8;
  static constexpr std::chrono::seconds kPassedOver{4};
  static constexpr std::chrono::seconds kBetweenTries{20};
  static constexpr std::chrono::milliseconds kBetweenLooks{5};

  // `look_soon`: called when look() is due, because a peer started to wait or a turn ended.
  SendTurns(int rank_count, std::function<void()> look_soon);

  // Queues an urgent message of at least kMessageBytesMin for this peer.
  void enter(Rank to);
  // The system has accepted the peer's first message.
  void leave(Rank to);
  // Removes all messages of a lost peer.
  void leave_all(Rank to);

  enum class Kind { kUrgent, kBulk };
  // Returns whether the peer's first message, or a piece of bulk, may begin. If not, the peer waits
  // until a look() returns it, and asks again.
  [[nodiscard]] bool may_begin(Rank to, Kind kind);

  // One peer's connection. acknowledged_bytes never decreases.
  struct Sent {
    std::uint64_t sent_bytes = 0;  // accepted by the system
    std::uint64_t acknowledged_bytes = 0;
  };

  struct Look {
    std::vector<Rank> released;  // peers that need not wait any more
    bool is_due_again = false;   // after kBetweenLooks
  };

  // Must also be called about twice a second. sent: [Rank].
  [[nodiscard]] Look look(SteadyClock::time_point now, std::span<const Sent> sent);

 private:
  // A measurement of the uplink over a part of the time.
  struct Share {
    std::uint64_t bytes = 0;  // acknowledged
    SteadyClock::duration time{};

    // nullopt before enough was measured; afterwards the measurement restarts.
    [[nodiscard]] std::optional<double> take_rate();
  };

  struct Peer {
    std::deque<std::uint64_t> places;  // in the order of enter() over all peers
    bool is_waiting = false;
    std::uint64_t acknowledged_bytes = 0;  // at the last look
    bool was_under_way = false;            // at the last look, data was in transit
    // Of its turns since the last judge() with a result.
    Share turns;
    SteadyClock::duration standstill{};
    int slow_in_a_row = 0;  // measurements
    std::optional<SteadyClock::time_point> passed_over_until;
  };

  // Peers by index. These REQUIRE that mutex_ is held.
  [[nodiscard]] std::optional<std::size_t> whose_turn() const;
  [[nodiscard]] bool may(std::size_t peer, Kind kind) const;
  // The parts of look().
  void measure(SteadyClock::time_point now, std::span<const Sent> sent);
  void judge(Peer& peer, SteadyClock::time_point now);
  void end_what_is_over(SteadyClock::time_point now);
  void try_if_due(SteadyClock::time_point now);

  const std::function<void()> look_soon_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Peer> peers_;  // [Rank]
  std::uint64_t next_place_ = 0;
  int waiting_ = 0;  // peers

  std::optional<double> bytes_per_s_;  // of the last trial
  Share try_;                          // of trials since then
  std::optional<SteadyClock::time_point> trying_since_;
  std::optional<SteadyClock::time_point> tried_at_;

  std::optional<std::size_t> turn_of_;                // at the last look
  std::optional<SteadyClock::time_point> looked_at_;  // set if another look was due soon
};

}  // namespace motley
