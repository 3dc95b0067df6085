#include "cluster/lease/lease_keeper.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace motley {

LeaseKeeper::LeaseKeeper(double interval_s, std::function<void(const std::string& line)> renew)
    : renew_(std::move(renew)),
      thread_([this, interval_s](const std::stop_token& stop) { keep(stop, interval_s); }) {}

LeaseKeeper::~LeaseKeeper() = default;

LeaseKeeper::Work::Work(LeaseKeeper& keeper) : keeper_(keeper) {
  keeper_.works_since_s_.store(now_s());
}

LeaseKeeper::Work::~Work() {
  keeper_.works_since_s_.store(0);
}

void LeaseKeeper::keep(const std::stop_token& stop, double interval_s) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const double works_since_s = works_since_s_.load();
    if (works_since_s > 0 && now_s() - works_since_s < kWorkMax_s) got_on();
    renew_(fmt::format("{{\"lease\":{}}}\n", count_.load()));
    wake_.wait_for(lock, stop, std::chrono::duration<double>(interval_s), [] { return false; });
  }
}

}  // namespace motley
