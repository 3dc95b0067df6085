// DeviceEvent: a marker in the work of a device's stream, for which other streams and the host can
// wait.
//
// Uses c10's generic device interface: with c10::Event the host cannot wait before LibTorch 2.5.
// Recorded by one thread; once recorded, any thread may wait for it.
#pragma once

#include <c10/core/Stream.h>

namespace motley {

class DeviceEvent {
 public:
  enum class Kind {
    kOrder,
    kTimed,  // also records its time, if the device can; costs the device slightly more
  };

  // Marks the work submitted to `stream` so far.
  explicit DeviceEvent(const c10::Stream& stream, Kind kind = Kind::kOrder);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // Moves the marker behind the work submitted by now. REQUIRES: no thread waits for it.
  void record_again();

  // Work submitted to `later` from now on starts after the marker.
  void block_stream(const c10::Stream& later) const;

  // Whether all work before the marker is done.
  [[nodiscard]] bool is_done() const;
  // Sleeps until is_done(), at most about 0.5 ms or an eighth of the wait too long. Throws
  // DeviceStall after `stall_timeout_s`.
  void wait(double stall_timeout_s) const;

  // Seconds by the device's clock from this marker to the other. Throws if the device has no such
  // clock. REQUIRES: both are kTimed, of one stream and done.
  [[nodiscard]] double seconds_to(const DeviceEvent& other) const;

 private:
  const c10::Stream stream_;
  const Kind kind_;
  void* event_ = nullptr;
};

}  // namespace motley
