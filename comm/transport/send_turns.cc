#include "comm/transport/send_turns.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

// A judgement needs so much, or nothing else in so long: less says more about when bytes are
// acknowledged, and about what a link lets pass at once after a rest, than about its rate.
constexpr std::chrono::milliseconds kTurnsMin{10};
constexpr std::uint64_t kBytesMin = std::uint64_t{512} << 10;
constexpr std::chrono::milliseconds kTurnsMax{400};
constexpr std::chrono::milliseconds kStandstill{50};
// One that is off must not count for much: what a link lets pass is found by steps in this
// direction, forgotten by and by in the other, and one judgement passes nobody over.
constexpr double kRise = 0.3;
constexpr double kKept = 0.99;
constexpr int kSlowMax = 2;

}  // namespace

SendTurns::SendTurns(int rank_count, std::function<void()> look_soon)
    : look_soon_(std::move(look_soon)), peers_(static_cast<std::size_t>(rank_count)) {}

void SendTurns::enter(Rank to) {
  const std::lock_guard lock(mutex_);
  peers_[to.index()].places.push_back(next_place_++);
}

void SendTurns::leave(Rank to) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[to.index()];
    MOTLEY_CHECK(!peer.places.empty(), "rank {} has no turn", to.value);
    peer.places.pop_front();
    if (!peer.passed_over_until) leaving_ = to.index();
    if (waiting_ == 0) return;
  }
  look_soon_();
}

void SendTurns::leave_all(Rank to) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[to.index()];
    peer.places.clear();
    if (leaving_ == to.index()) leaving_.reset();
    if (std::exchange(peer.is_waiting, false)) --waiting_;
    if (waiting_ == 0) return;
  }
  look_soon_();
}

SendTurns::Answer SendTurns::may_begin_urgent(Rank to) {
  return ask(to, Kind::kUrgent, 0);
}

SendTurns::Answer SendTurns::may_begin_bulk(Rank to, std::uint64_t bytes) {
  return ask(to, Kind::kBulk, bytes);
}

SendTurns::Answer SendTurns::ask(Rank to, Kind kind, std::uint64_t bytes) {
  Answer answer{};
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[to.index()];
    answer = may(to.index(), kind);
    if (answer == Answer::kYes) peer.bulk_bytes += bytes;
    if (answer == Answer::kYes || std::exchange(peer.is_waiting, true)) return answer;
    if (++waiting_ > 1) return answer;
  }
  look_soon_();
  return answer;
}

SendTurns::Answer SendTurns::may(std::size_t number, Kind kind) const {
  const Peer& peer = peers_[number];
  if (kind == Kind::kUrgent && peer.passed_over_until) return Answer::kYes;
  if (first().value_or(number) != number || leaving_.value_or(number) != number) {
    return Answer::kNotItsTurn;
  }
  const bool is_full =
      kind == Kind::kBulk && peer.room_bytes && peer.bulk_bytes >= *peer.room_bytes;
  return is_full ? Answer::kNoRoom : Answer::kYes;
}

std::optional<std::size_t> SendTurns::first() const {
  std::optional<std::size_t> first;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    const Peer& peer = peers_[number];
    if (peer.places.empty() || peer.passed_over_until) continue;
    if (!first || peer.places.front() < peers_[*first].places.front()) first = number;
  }
  return first;
}

std::optional<std::size_t> SendTurns::whose_turn() const {
  return leaving_ ? leaving_ : first();
}

SendTurns::Look SendTurns::look(SteadyClock::time_point now, std::span<const Sent> sent) {
  const std::lock_guard lock(mutex_);
  std::uint64_t acknowledged_bytes = 0;
  for (const Sent& each : sent) acknowledged_bytes += each.acknowledged_bytes;
  for (Peer& peer : peers_) {
    if (peer.passed_over_until && *peer.passed_over_until <= now) peer.passed_over_until.reset();
  }
  if (looked_at_ && turn_of_) {
    Peer& peer = peers_[*turn_of_];
    peer.moved_bytes += acknowledged_bytes - acknowledged_bytes_;
    peer.turns += now - *looked_at_;
    judge(peer, now);
  }
  if (leaving_) {
    const double left = bytes_per_s_ * std::chrono::duration<double>(kHandOver).count();
    const bool is_there = sent[*leaving_].on_the_way_bytes <=
                          std::max(kHandOverBytesMin, static_cast<std::uint64_t>(left));
    if (is_there || peers_[*leaving_].passed_over_until) leaving_.reset();
  }
  Look seen;
  for (std::size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    peer.bulk_bytes = sent[number].on_the_way_bytes;
    peer.room_bytes = sent[number].room_bytes;
    const Kind kind = peer.places.empty() ? Kind::kBulk : Kind::kUrgent;
    if (!peer.is_waiting || may(number, kind) != Answer::kYes) continue;
    peer.is_waiting = false;
    --waiting_;
    seen.released.push_back(Rank{static_cast<std::int32_t>(number)});
  }
  seen.anyone_waits = waiting_ > 0;
  looked_at_.reset();
  if (seen.anyone_waits) looked_at_ = now;
  turn_of_ = whose_turn();
  acknowledged_bytes_ = acknowledged_bytes;
  return seen;
}

void SendTurns::judge(Peer& peer, SteadyClock::time_point now) {
  const bool stands_still = peer.moved_bytes == 0 && peer.turns >= kStandstill;
  const bool has_shown = peer.turns >= kTurnsMin && peer.moved_bytes >= kBytesMin;
  if (!stands_still && !has_shown && peer.turns < kTurnsMax) return;
  const double rate = static_cast<double>(std::exchange(peer.moved_bytes, 0)) /
                      std::chrono::duration<double>(std::exchange(peer.turns, {})).count();
  peer.slow_in_a_row = rate < kFull * bytes_per_s_ ? peer.slow_in_a_row + 1 : 0;
  if (stands_still || peer.slow_in_a_row >= kSlowMax) peer.passed_over_until = now + kPassedOver;
  if (bytes_per_s_ == 0) bytes_per_s_ = rate;
  bytes_per_s_ = std::max(kKept * bytes_per_s_, bytes_per_s_ + kRise * (rate - bytes_per_s_));
}

}  // namespace motley
