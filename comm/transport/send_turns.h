// SendTurns: in which order the large messages of one rank leave it, when they go to several peers
// over connections of their own. Left alone, the connections would divide what the machine can
// send, and each of two messages would take as long as both. In turns, as the planner's simulator
// has it too (partitioner/simulate/link_queue.h), the first takes half of that and the second no
// longer: urgent messages in the order in which they were sent, whoever they go to; bulk while none
// of them waits. A turn ends when the system has taken the message, of which some 100 KiB may still
// be here: those keep the link busy, and on their way is more than this machine's link.
//
// A peer may be slower than what the machine can send, by a link of its own or because it takes
// nothing. In its turn the machine's own link is not full, so nobody should wait for it. Whoever
// would wait first therefore begins a try, and then one each kBetweenTries: all send at once, and
// it is measured how much leaves. A peer in whose turns less than kFull of that leaves is passed
// over for kPassedOver: it sends as before, and the next has its turn.
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
  static constexpr double kFull = 0.8;
  static constexpr std::chrono::seconds kPassedOver{4};
  static constexpr std::chrono::seconds kBetweenTries{20};
  static constexpr std::chrono::milliseconds kBetweenLooks{5};

  // `look_soon`: called when look() is due, because somebody began to wait or need not wait any
  // more.
  SendTurns(int rank_count, std::function<void()> look_soon);

  // An urgent message of at least kMessageBytesMin goes to the end of the queue of this peer.
  void enter(Rank to);
  // The system has taken the first of them.
  void leave(Rank to);
  // All of them are gone, with the peer.
  void leave_all(Rank to);

  enum class Kind { kUrgent, kBulk };
  // Returns whether the first of them, or a piece of bulk, may begin. If not, the peer waits until
  // a look() returns it, and asks again.
  [[nodiscard]] bool may_begin(Rank to, Kind kind);

  // Of one peer's connection. What is acknowledged is never less than before.
  struct Sent {
    std::uint64_t sent_bytes = 0;  // that the system has taken
    std::uint64_t acknowledged_bytes = 0;
  };

  struct Look {
    std::vector<Rank> released;  // they need not wait
    bool is_due_again = false;   // after kBetweenLooks
  };

  // To be called twice a second or so besides. sent: [Rank].
  [[nodiscard]] Look look(SteadyClock::time_point now, std::span<const Sent> sent);

 private:
  // What has been seen of the machine's link in some of the time.
  struct Share {
    std::uint64_t bytes = 0;  // that were acknowledged
    SteadyClock::duration time{};

    // Nothing before enough was seen; afterwards it begins anew.
    [[nodiscard]] std::optional<double> take_rate();
  };

  struct Peer {
    std::deque<std::uint64_t> places;  // in the order of enter(), of all peers together
    bool is_waiting = false;
    std::uint64_t acknowledged_bytes = 0;  // at the last look
    bool was_under_way = false;            // something, then
    // Of its turns since it was last judged.
    Share turns;
    SteadyClock::duration standstill{};
    int slow_in_a_row = 0;  // judgements
    std::optional<SteadyClock::time_point> passed_over_until;
  };

  // All by index; they REQUIRE that mutex_ is held.
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

  std::optional<double> bytes_per_s_;  // of the last try
  Share try_;                          // of tries since then
  std::optional<SteadyClock::time_point> trying_since_;
  std::optional<SteadyClock::time_point> tried_at_;

  std::optional<std::size_t> turn_of_;                // since the last look
  std::optional<SteadyClock::time_point> looked_at_;  // if another was due soon
};

}  // namespace motley
