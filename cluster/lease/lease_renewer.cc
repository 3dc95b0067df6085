#include "cluster/lease/lease_renewer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/process/sleep_clock.h"

namespace motley {

LeaseRenewer::LeaseRenewer(double interval_s,
                           double least_absence_s,
                           std::function<void(const std::string& line)> renew)
    : renew_(std::move(renew)),
      interval_s_(interval_s),
      least_absence_s_(least_absence_s),
      renewed_at_s_(sleepless_s()),
      thread_([this](const std::stop_token& stop) { renew_periodically(stop); }) {}

LeaseRenewer::~LeaseRenewer() = default;

LeaseRenewer::Work::Work(LeaseRenewer& renewer) : renewer_(renewer) {
  renewer_.works_since_s_.store(now_s());
}

LeaseRenewer::Work::~Work() {
  renewer_.works_since_s_.store(0);
}

double LeaseRenewer::absence_s() const {
  const double at_s = sleepless_s();
  const double under_way_s = at_s - renewed_at_s_.load() - interval_s_;
  const bool was_recent = at_s - came_back_at_s_.load() <= kRecently_s;
  const double longest_s = std::max(under_way_s, was_recent ? was_absent_s_.load() : 0);
  return longest_s >= least_absence_s_ ? longest_s : 0;
}

void LeaseRenewer::renew_periodically(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const double at_s = sleepless_s();
    const double missed_s = at_s - renewed_at_s_.exchange(at_s) - interval_s_;
    if (missed_s >= least_absence_s_) {
      was_absent_s_.store(missed_s);
      came_back_at_s_.store(at_s);
    }
    const double works_since_s = works_since_s_.load();
    if (works_since_s > 0 && now_s() - works_since_s < kWorkMax_s) note_progress_made();
    renew_(fmt::format("{{\"lease\":{}}}\n", count_.load()));
    wake_.wait_for(lock, stop, std::chrono::duration<double>(interval_s_), [] { return false; });
  }
}

}  // namespace motley
