#include "training/device_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace motley {

DeviceWatch::DeviceWatch(Activity& activity,
                         double patience_s,
                         std::function<void(const std::string& words)> on_standstill)
    : activity_(activity),
      patience_s_(patience_s),
      on_standstill_(std::move(on_standstill)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

DeviceWatch::~DeviceWatch() {
  thread_.request_stop();
}

void DeviceWatch::watch(const std::stop_token& stop) {
  constexpr double kLook_s = 0.25;
  const std::chrono::duration<double> look(std::min(kLook_s, 0.25 * patience_s_));
  std::uint64_t count = activity_.work().count();
  double since_s = now_s();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, stop, look, [] { return false; }) && !stop.stop_requested()) {
    const std::uint64_t now = activity_.work().count();
    if (now != count || !activity_.computes()) {
      count = now;
      since_s = now_s();
    } else if (now_s() - since_s >= patience_s_) {
      on_standstill_(activity_.words());
      return;
    }
  }
}

}  // namespace motley
