// EgressScheduler: the egress scheduler of one rank, which orders large messages to several peers
// on separate connections. Without it the connections share the machine's uplink, and each of two
// messages takes as long as both. With turns, as in the planner's simulator
// (partitioner/simulate/link_queue.h), the first takes half of that and the second no longer.
// Urgent messages leave in the order in which they were queued, to whichever peer; bulk only while
// none of them waits. A turn ends when the system has accepted the message. Some 100 KiB of it may
// still be buffered, which keeps the link busy.
//
// A peer may be slower than the machine's uplink, because of its own link or because it accepts no
// data. Its turns would not fill the uplink and must not delay other peers. So when a peer would
// wait for the first time, and then every kBetweenTrials, a trial begins: all peers send at once,
// and the total rate is measured. A peer whose turns reach less than kFull of that rate is skipped
// for kSkipTime: it sends without turns, and the next peer gets its turn.
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

class EgressScheduler {
 public:
  // Shorter messages take no turns.
  static constexpr std::size_t kMessageBytesMin = std::size_t{16} << 10;
  static constexpr double kFull = 0.8;
  static constexpr std::chrono::seconds kSkipTime{4};
  static constexpr std::chrono::seconds kBetweenTrials{20};
  static constexpr std::chrono::milliseconds kBetweenChecks{5};

  // `check_soon`: called when poll() is due, because a peer started to wait or a turn ended.
  EgressScheduler(int rank_count, std::function<void()> check_soon);

  // Queues an urgent message of at least kMessageBytesMin for this peer.
  void enqueue(Rank to);
  // The system has accepted the peer's first message.
  void dequeue(Rank to);
  // Removes all messages of a lost peer.
  void forget_peer(Rank to);

  enum class Kind { kUrgent, kBulk };
  // Returns whether the peer's first message, or a piece of bulk, may begin. If not, the peer waits
  // until a poll() returns it, and asks again.
  [[nodiscard]] bool may_begin(Rank to, Kind kind);

  // One peer's connection. acknowledged_bytes never decreases.
  struct Sent {
    std::uint64_t sent_bytes = 0;  // accepted by the system
    std::uint64_t acknowledged_bytes = 0;
  };

  struct PollResult {
    std::vector<Rank> released;  // peers that need not wait any more
    bool is_due_again = false;   // after kBetweenChecks
  };

  // Must also be called about twice a second. sent: [Rank].
  [[nodiscard]] PollResult poll(SteadyClock::time_point now, std::span<const Sent> sent);

 private:
  // A measurement of the uplink over a part of the time.
  struct RateSample {
    std::uint64_t bytes = 0;  // acknowledged
    SteadyClock::duration time{};

    // nullopt before enough was measured; afterwards the measurement restarts.
    [[nodiscard]] std::optional<double> take_rate();
  };

  struct Peer {
    std::deque<std::uint64_t> positions;  // in the order of enqueue() over all peers
    bool is_waiting = false;
    std::uint64_t acknowledged_bytes = 0;  // at the last look
    bool was_under_way = false;            // at the last look, data was in transit
    // Of its turns since the last evaluate() with a result.
    RateSample sending;
    SteadyClock::duration standstill{};
    int slow_in_a_row = 0;  // measurements
    std::optional<SteadyClock::time_point> skipped_until;
  };

  // Peers by index. These REQUIRE that mutex_ is held.
  [[nodiscard]] std::optional<std::size_t> next_sender() const;
  [[nodiscard]] bool may_send(std::size_t peer, Kind kind) const;
  // The parts of poll().
  void measure(SteadyClock::time_point now, std::span<const Sent> sent);
  void evaluate(Peer& peer, SteadyClock::time_point now);
  void end_finished_trials(SteadyClock::time_point now);
  void start_trial_if_due(SteadyClock::time_point now);

  const std::function<void()> check_soon_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Peer> peers_;  // [Rank]
  std::uint64_t next_position_ = 0;
  int waiting_ = 0;  // peers

  std::optional<double> bytes_per_s_;  // of the last trial
  RateSample trials_;                  // of trials since then
  std::optional<SteadyClock::time_point> trying_since_;
  std::optional<SteadyClock::time_point> tried_at_;

  std::optional<std::size_t> current_sender_;         // at the last look
  std::optional<SteadyClock::time_point> polled_at_;  // set if another look was due soon
};

}  // namespace motley
