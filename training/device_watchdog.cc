#include "training/device_watchdog.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace motley {

DeviceWatchdog::DeviceWatchdog(Activity& activity,
                               double stall_timeout_s,
                               std::function<void(const std::string& words)> on_stall)
    : activity_(activity),
      stall_timeout_s_(stall_timeout_s),
      on_stall_(std::move(on_stall)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

DeviceWatchdog::~DeviceWatchdog() {
  thread_.request_stop();
}

void DeviceWatchdog::watch(const std::stop_token& stop) {
  constexpr double kLook_s = 0.25;
  const std::chrono::duration<double> look(std::min(kLook_s, 0.25 * stall_timeout_s_));
  std::uint64_t count = activity_.work().count();
  double since_s = now_s();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, stop, look, [] { return false; }) && !stop.stop_requested()) {
    const std::uint64_t now = activity_.work().count();
    if (now != count || !activity_.computes()) {
      count = now;
      since_s = now_s();
    } else if (now_s() - since_s >= stall_timeout_s_) {
      on_stall_(activity_.words());
      return;
    }
  }
}

}  // namespace motley
