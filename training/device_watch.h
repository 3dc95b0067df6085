// DeviceWatch: notices a rank whose compute thread does not come back from its device.
//
// Waits for a device have a deadline of their own (models/device/device_event.h). What LibTorch
// calls has none: while a device that stands still has its queue full, the host stands in the
// launch of the next operation. So another thread looks whether the rank gets on where it waits for
// nobody.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "pipeline/execute/activity.h"

namespace motley {

class DeviceWatch {
 public:
  // Calls `on_standstill` once, on a thread of its own, when an action has been under way for
  // `patience_s` in which nothing was finished and nobody was waited for. `words` say which. What
  // is lent must outlive it.
  DeviceWatch(Activity& activity,
              double patience_s,
              std::function<void(const std::string& words)> on_standstill);
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

 private:
  void watch(const std::stop_token& stop);

  Activity& activity_;
  const double patience_s_;
  const std::function<void(const std::string&)> on_standstill_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace motley
