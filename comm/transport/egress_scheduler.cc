#include "comm/transport/egress_scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

// A rate needs this much time and data, or kTimeMax: less data measures the timing of
// acknowledgements and a link's burst after idling rather than its bandwidth.
constexpr std::chrono::milliseconds kTimeMin{10};
constexpr std::uint64_t kBytesMin = std::uint64_t{512} << 10;
constexpr std::chrono::milliseconds kTimeMax{400};
// The limit of a trial in which fewer than two peers have enough to send; the next trial continues
// it.
constexpr std::chrono::milliseconds kTryMax{500};
constexpr std::chrono::milliseconds kStandstillMax{200};  // more than a distant peer needs
constexpr int kSlowMax = 2;  // a single wrong measurement skips no peer

double seconds(SteadyClock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

std::optional<double> EgressScheduler::RateSample::take_rate() {
  if ((time < kTimeMin || bytes < kBytesMin) && time < kTimeMax) return std::nullopt;
  const double rate = static_cast<double>(bytes) / seconds(time);
  *this = {};
  return rate;
}

EgressScheduler::EgressScheduler(int rank_count, std::function<void()> check_soon)
    : check_soon_(std::move(check_soon)), peers_(static_cast<std::size_t>(rank_count)) {}

void EgressScheduler::enqueue(Rank to) {
  const std::lock_guard lock(mutex_);
  peers_[to.index()].positions.push_back(next_position_++);
}

void EgressScheduler::dequeue(Rank to) {
  {
    const std::lock_guard lock(mutex_);
    auto& positions = peers_[to.index()].positions;
    MOTLEY_CHECK(!positions.empty(), "rank {} has no turn", to.value);
    positions.pop_front();
    if (waiting_ == 0) return;
  }
  check_soon_();
}

void EgressScheduler::forget_peer(Rank to) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[to.index()];
    peer.positions.clear();
    if (std::exchange(peer.is_waiting, false)) --waiting_;
    if (waiting_ == 0) return;
  }
  check_soon_();
}

bool EgressScheduler::may_begin(Rank to, Kind kind) {
  {
    const std::lock_guard lock(mutex_);
    if (may_send(to.index(), kind)) return true;
    if (std::exchange(peers_[to.index()].is_waiting, true)) return false;
    if (++waiting_ > 1) return false;
  }
  check_soon_();
  return false;
}

bool EgressScheduler::may_send(std::size_t peer, Kind kind) const {
  if (trying_since_ || (kind == Kind::kUrgent && peers_[peer].skipped_until)) return true;
  return next_sender().value_or(peer) == peer;
}

std::optional<std::size_t> EgressScheduler::next_sender() const {
  std::optional<std::size_t> first;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    const Peer& peer = peers_[number];
    if (peer.positions.empty() || peer.skipped_until) continue;
    if (!first || peer.positions.front() < peers_[*first].positions.front()) first = number;
  }
  return first;
}

EgressScheduler::PollResult EgressScheduler::poll(SteadyClock::time_point now,
                                                  std::span<const Sent> sent) {
  const std::lock_guard lock(mutex_);
  measure(now, sent);
  end_finished_trials(now);
  start_trial_if_due(now);
  PollResult seen;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const Kind kind = peer.positions.empty() ? Kind::kBulk : Kind::kUrgent;
    if (!peer.is_waiting || !may_send(number, kind)) continue;
    peer.is_waiting = false;
    --waiting_;
    seen.released.push_back(Rank{static_cast<std::int32_t>(number)});
  }
  seen.is_due_again = waiting_ > 0 || trying_since_;
  polled_at_.reset();
  if (seen.is_due_again) polled_at_ = now;
  current_sender_ = next_sender();
  return seen;
}

void EgressScheduler::measure(SteadyClock::time_point now, std::span<const Sent> sent) {
  std::uint64_t moved_bytes = 0;
  int were_under_way = 0;
  int are_under_way = 0;
  std::uint64_t moved_while_current = 0;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const std::uint64_t acknowledged = sent[number].acknowledged_bytes;
    const std::uint64_t moved = acknowledged - std::exchange(peer.acknowledged_bytes, acknowledged);
    const bool is_under_way = sent[number].sent_bytes > acknowledged;
    moved_bytes += moved;
    if (current_sender_ == number) moved_while_current = moved;
    were_under_way += std::exchange(peer.was_under_way, is_under_way) ? 1 : 0;
    are_under_way += is_under_way ? 1 : 0;
  }
  if (!polled_at_) return;
  const auto passed = now - *polled_at_;
  if (trying_since_) {
    if (were_under_way < 2 || are_under_way < 2) return;
    trials_.bytes += moved_bytes;
    trials_.time += passed;
  } else if (current_sender_) {
    Peer& peer = peers_[*current_sender_];
    peer.sending.bytes += moved_bytes;
    peer.sending.time += passed;
    peer.standstill = moved_while_current > 0 ? SteadyClock::duration{} : peer.standstill + passed;
    evaluate(peer, now);
  }
}

void EgressScheduler::evaluate(Peer& peer, SteadyClock::time_point now) {
  const bool stands_still = peer.standstill >= kStandstillMax;
  const auto rate = peer.sending.take_rate();
  if (rate) {
    const bool is_slow = bytes_per_s_ && *rate < kFull * *bytes_per_s_;
    peer.slow_in_a_row = is_slow ? peer.slow_in_a_row + 1 : 0;
  }
  if (!stands_still && peer.slow_in_a_row < kSlowMax) return;
  peer.skipped_until = now + kSkipTime;
  peer.standstill = {};
  peer.slow_in_a_row = 0;
}

void EgressScheduler::end_finished_trials(SteadyClock::time_point now) {
  for (Peer& peer : peers_) {
    if (peer.skipped_until && *peer.skipped_until <= now) peer.skipped_until.reset();
  }
  if (!trying_since_) return;
  const auto rate = trials_.take_rate();
  if (rate) bytes_per_s_ = rate;
  if (!rate && now - *trying_since_ < kTryMax) return;
  trying_since_.reset();
  tried_at_ = now;
}

void EgressScheduler::start_trial_if_due(SteadyClock::time_point now) {
  if (waiting_ == 0 || trying_since_ || (tried_at_ && now - *tried_at_ < kBetweenTrials)) return;
  trying_since_ = now;
}

}  // namespace motley
