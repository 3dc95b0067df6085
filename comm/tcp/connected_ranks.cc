#include "comm/tcp/connected_ranks.h"

#include <algorithm>

#include "base/check.h"
#include "comm/transport/comm_errors.h"

namespace motley {

ConnectedRanks::ConnectedRanks(Rank self, int rank_count)
    : states_(static_cast<std::size_t>(rank_count)) {
  states_[self.index()].is_connected = true;
}

void ConnectedRanks::add(Rank rank, bool is_local, bool shares_memory) {
  {
    const std::lock_guard lock(mutex_);
    states_[rank.index()] = {true, is_local, shares_memory};
  }
  changed_.notify_all();
}

void ConnectedRanks::refuse(Rank refusing, const std::string& cause) {
  {
    const std::lock_guard lock(mutex_);
    refusal_ = peer_refused(refusing, cause);
  }
  changed_.notify_all();
}

bool ConnectedRanks::has(Rank rank) const {
  return state_of(rank).is_connected;
}

bool ConnectedRanks::lacks_only(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count(states_, false, &State::is_connected) == 1 &&
         !states_[rank.index()].is_connected;
}

bool ConnectedRanks::is_local(Rank rank) const {
  return state_of(rank).is_local;
}

bool ConnectedRanks::shares_memory(Rank rank) const {
  return state_of(rank).shares_memory;
}

bool ConnectedRanks::wait_until(SteadyClock::time_point time) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, time, [this] { return refusal_ || are_all_connected(); });
}

Result<void> ConnectedRanks::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_ ? Result<void>(*refusal_) : Result<void>();
}

std::optional<Rank> ConnectedRanks::first_missing() const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(states_, false, &State::is_connected);
  if (found == states_.end()) return {};
  return Rank{static_cast<std::int32_t>(found - states_.begin())};
}

ConnectedRanks::State ConnectedRanks::state_of(Rank rank) const {
  const std::lock_guard lock(mutex_);
  MOTLEY_CHECK(rank.value >= 0 && rank.index() < states_.size(), "rank {}", rank.value);
  return states_[rank.index()];
}

// REQUIRES: mutex_ is locked.
bool ConnectedRanks::are_all_connected() const {
  return std::ranges::all_of(states_, &State::is_connected);
}

}  // namespace motley
