// DeviceWatchdog: detects that the compute thread does not return from a device call.
//
// Waits for a device have a deadline of their own (models/device/device_event.h). LibTorch's calls
// have none: if a device hangs with a full queue, the host blocks in the launch of the next
// operation. Therefore another thread checks that the rank makes progress in actions that wait for
// no other rank.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "pipeline/execute/activity.h"

namespace motley {

class DeviceWatchdog {
 public:
  // Calls `on_stall` once, on a thread of its own, if an action that waits for no other rank
  // has made no progress for `stall_timeout_s`. `words` describe the action. `activity` must
  // outlive this object.
  DeviceWatchdog(Activity& activity,
                 double stall_timeout_s,
                 std::function<void(const std::string& words)> on_stall);
  ~DeviceWatchdog();
  DeviceWatchdog(const DeviceWatchdog&) = delete;
  DeviceWatchdog& operator=(const DeviceWatchdog&) = delete;

 private:
  void watch(const std::stop_token& stop);

  Activity& activity_;
  const double stall_timeout_s_;
  const std::function<void(const std::string&)> on_stall_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace motley
