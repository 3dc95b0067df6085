#include "comm/transport/send_turns.h"

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

std::optional<double> SendTurns::Share::take_rate() {
  if ((time < kTimeMin || bytes < kBytesMin) && time < kTimeMax) return std::nullopt;
  const double rate = static_cast<double>(bytes) / seconds(time);
  *this = {};
  return rate;
}

SendTurns::SendTurns(int rank_count, std::function<void()> look_soon)
    : look_soon_(std::move(look_soon)), peers_(static_cast<std::size_t>(rank_count)) {}

void SendTurns::enter(Rank to) {
  const std::lock_guard lock(mutex_);
  peers_[to.index()].places.push_back(next_place_++);
}

void SendTurns::leave(Rank to) {
  {
    const std::lock_guard lock(mutex_);
    auto& places = peers_[to.index()].places;
    MOTLEY_CHECK(!places.empty(), "rank {} has no turn", to.value);
    places.pop_front();
    if (waiting_ == 0) return;
  }
  look_soon_();
}

void SendTurns::leave_all(Rank to) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[to.index()];
    peer.places.clear();
    if (std::exchange(peer.is_waiting, false)) --waiting_;
    if (waiting_ == 0) return;
  }
  look_soon_();
}

bool SendTurns::may_begin(Rank to, Kind kind) {
  {
    const std::lock_guard lock(mutex_);
    if (may(to.index(), kind)) return true;
    if (std::exchange(peers_[to.index()].is_waiting, true)) return false;
    if (++waiting_ > 1) return false;
  }
  look_soon_();
  return false;
}

bool SendTurns::may(std::size_t peer, Kind kind) const {
  if (trying_since_ || (kind == Kind::kUrgent && peers_[peer].passed_over_until)) return true;
  return whose_turn().value_or(peer) == peer;
}

std::optional<std::size_t> SendTurns::whose_turn() const {
  std::optional<std::size_t> first;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    const Peer& peer = peers_[number];
    if (peer.places.empty() || peer.passed_over_until) continue;
    if (!first || peer.places.front() < peers_[*first].places.front()) first = number;
  }
  return first;
}

SendTurns::Look SendTurns::look(SteadyClock::time_point now, std::span<const Sent> sent) {
  const std::lock_guard lock(mutex_);
  measure(now, sent);
  end_what_is_over(now);
  try_if_due(now);
  Look seen;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const Kind kind = peer.places.empty() ? Kind::kBulk : Kind::kUrgent;
    if (!peer.is_waiting || !may(number, kind)) continue;
    peer.is_waiting = false;
    --waiting_;
    seen.released.push_back(Rank{static_cast<std::int32_t>(number)});
  }
  seen.is_due_again = waiting_ > 0 || trying_since_;
  looked_at_.reset();
  if (seen.is_due_again) looked_at_ = now;
  turn_of_ = whose_turn();
  return seen;
}

void SendTurns::measure(SteadyClock::time_point now, std::span<const Sent> sent) {
  std::uint64_t moved_bytes = 0;
  int were_under_way = 0;
  int are_under_way = 0;
  std::uint64_t moved_of_turn = 0;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const std::uint64_t acknowledged = sent[number].acknowledged_bytes;
    const std::uint64_t moved = acknowledged - std::exchange(peer.acknowledged_bytes, acknowledged);
    const bool is_under_way = sent[number].sent_bytes > acknowledged;
    moved_bytes += moved;
    if (turn_of_ == number) moved_of_turn = moved;
    were_under_way += std::exchange(peer.was_under_way, is_under_way) ? 1 : 0;
    are_under_way += is_under_way ? 1 : 0;
  }
  if (!looked_at_) return;
  const auto passed = now - *looked_at_;
  if (trying_since_) {
    if (were_under_way < 2 || are_under_way < 2) return;
    try_.bytes += moved_bytes;
    try_.time += passed;
  } else if (turn_of_) {
    Peer& peer = peers_[*turn_of_];
    peer.turns.bytes += moved_bytes;
    peer.turns.time += passed;
    peer.standstill = moved_of_turn > 0 ? SteadyClock::duration{} : peer.standstill + passed;
    judge(peer, now);
  }
}

void SendTurns::judge(Peer& peer, SteadyClock::time_point now) {
  const bool stands_still = peer.standstill >= kStandstillMax;
  const auto rate = peer.turns.take_rate();
  if (rate) {
    const bool is_slow = bytes_per_s_ && *rate < kFull * *bytes_per_s_;
    peer.slow_in_a_row = is_slow ? peer.slow_in_a_row + 1 : 0;
  }
  if (!stands_still && peer.slow_in_a_row < kSlowMax) return;
  peer.passed_over_until = now + kPassedOver;
  peer.standstill = {};
  peer.slow_in_a_row = 0;
}

void SendTurns::end_what_is_over(SteadyClock::time_point now) {
  for (Peer& peer : peers_) {
    if (peer.passed_over_until && *peer.passed_over_until <= now) peer.passed_over_until.reset();
  }
  if (!trying_since_) return;
  const auto rate = try_.take_rate();
  if (rate) bytes_per_s_ = rate;
  if (!rate && now - *trying_since_ < kTryMax) return;
  trying_since_.reset();
  tried_at_ = now;
}

void SendTurns::try_if_due(SteadyClock::time_point now) {
  if (waiting_ == 0 || trying_since_ || (tried_at_ && now - *tried_at_ < kBetweenTries)) return;
  trying_since_ = now;
}

}  // namespace motley
