// ConnectedRanks: which ranks of a transport are connected, and how, or why one will not be.
//
// Any thread may call it; changes come from the I/O thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"

namespace motley {

class ConnectedRanks {
 public:
  // REQUIRES for all ranks below: 0 <= rank < rank_count.
  ConnectedRanks(Rank self, int rank_count);

  void add(Rank rank, bool is_local, bool shares_memory);

  // A rank refused this one for good: wait_until() returns kPeer from now on.
  void refuse(Rank refusing, const std::string& cause);

  [[nodiscard]] bool has(Rank rank) const;
  // Whether all others are connected and this one is not.
  [[nodiscard]] bool lacks_only(Rank rank) const;
  // Of a connected rank; false before.
  [[nodiscard]] bool is_local(Rank rank) const;
  [[nodiscard]] bool shares_memory(Rank rank) const;

  // Waits until all are connected or one has refused, but no longer than until `time`. True once
  // either is so.
  [[nodiscard]] bool wait_until(SteadyClock::time_point time) const;

  // The refusal, if there was one.
  [[nodiscard]] Result<void> refusal() const;
  // The first rank that is not connected; nullopt if there is none.
  [[nodiscard]] std::optional<Rank> first_missing() const;

 private:
  struct State {
    bool is_connected = false;
    bool is_local = false;
    bool shares_memory = false;
  };

  [[nodiscard]] State state_of(Rank rank) const;
  [[nodiscard]] bool are_all_connected() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<State> states_;     // [Rank]; guarded by mutex_
  std::optional<Error> refusal_;  // guarded by mutex_
};

}  // namespace motley
