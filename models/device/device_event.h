// DeviceEvent: a mark in the work of a device's stream, which other streams and the host wait for.
//
// Over c10's interface for devices in general: c10::Event cannot be waited for by the host before
// LibTorch 2.5. Threads: recorded by one; waited for by any once recorded.
#pragma once

#include <c10/core/Stream.h>

namespace motley {

class DeviceEvent {
 public:
  enum class Kind {
    kOrder,
    kTimed,  // keeps also when it was reached, where the device can; costs the device a little more
  };

  // Marks what `stream` has been given so far.
  explicit DeviceEvent(const c10::Stream& stream, Kind kind = Kind::kOrder);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // Marks the same for what the stream has been given by now. REQUIRES: nobody waits for it.
  void mark_again();

  // What `later` is given from now on begins after the mark.
  void hold_back(const c10::Stream& later) const;

  // Whether all before the mark is done.
  [[nodiscard]] bool is_done() const;
  // Returns when it is, having slept until then, at most some 0.5 ms or an eighth of the wait too
  // long. Throws DeviceStandstill after `patience_s`.
  void wait(double patience_s) const;

  // Seconds by the device's clock from this mark to that one. Throws where the device has no such
  // clock. REQUIRES: both are kTimed, of one stream and done.
  [[nodiscard]] double seconds_to(const DeviceEvent& other) const;

 private:
  const c10::Stream stream_;
  const Kind kind_;
  void* event_ = nullptr;
};

}  // namespace motley
