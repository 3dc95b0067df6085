// DeviceEvent: a mark in the work of a device's stream, which other streams and the host wait for.
//
// Over c10's interface for devices in general: c10::Event cannot be waited for by the host before
// LibTorch 2.5. Threads: recorded by one; waited for by any once recorded.
#pragma once

#include <c10/core/Stream.h>

namespace motley {

class DeviceEvent {
 public:
  // Marks what `stream` has been given so far.
  explicit DeviceEvent(const c10::Stream& stream);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // What `later` is given from now on begins after the mark.
  void hold_back(const c10::Stream& later) const;

  // Whether all before the mark is done.
  [[nodiscard]] bool is_done() const;
  // Returns when it is.
  void wait() const;

 private:
  c10::Stream stream_;
  void* event_ = nullptr;
};

}  // namespace motley
