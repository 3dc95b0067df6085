#include "models/device/device_event.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "base/clock.h"
#include "models/device/device_stall.h"
#include "models/device/kinds/device_queries.h"
#include "models/device/torch_compat.h"

namespace motley {
namespace {

const c10::impl::DeviceGuardImplInterface& device_of(const c10::Stream& stream) {
  return *c10::impl::getDeviceGuardImpl(stream.device_type());
}

// The device's name in cluster files; LibTorch's own text numbers every device ("mps:0").
std::string name_of(const c10::Device& device) {
  const DeviceKind* const kind = find_device_kind(device.type());
  return kind == nullptr ? device.str() : device_name(*kind, device.index());
}

}  // namespace

DeviceEvent::DeviceEvent(const c10::Stream& stream, Kind kind) : stream_(stream), kind_(kind) {
  record_again();
}

DeviceEvent::~DeviceEvent() {
  device_of(stream_).destroyEvent(event_, stream_.device_index());
}

void DeviceEvent::record_again() {
  // CUDA records a time only with the second flag.
  const c10::EventFlag flag =
      kind_ == Kind::kOrder ? c10::EventFlag::PYTORCH_DEFAULT : c10::EventFlag::BACKEND_DEFAULT;
  device_of(stream_).record(&event_, stream_, stream_.device_index(), flag);
}

void DeviceEvent::block_stream(const c10::Stream& later) const {
  device_of(stream_).block(event_, later);
}

bool DeviceEvent::is_done() const {
  return device_of(stream_).queryEvent(event_);
}

// LibTorch's own wait has no deadline, and CUDA's occupies a whole core.
void DeviceEvent::wait(double stall_timeout_s) const {
  constexpr double kShortest_s = 20e-6;
  constexpr double kLongest_s = 0.5e-3;  // so that polling takes at most 2 % of a core
  constexpr double kShare = 0.125;       // of the time waited so far
  // A thread that only waits has not selected this device, and CUDA's queries would create a
  // context on its current one.
  device_of(stream_).setDevice(stream_.device());
  if (is_done()) return;
  const double start_s = now_s();
  while (!is_done()) {
    const double waited_s = now_s() - start_s;
    if (waited_s > stall_timeout_s) throw DeviceStall(name_of(stream_.device()), stall_timeout_s);
    const double sleep_s = std::clamp(kShare * waited_s, kShortest_s, kLongest_s);
    std::this_thread::sleep_for(std::chrono::duration<double>(sleep_s));
  }
  // Returns at once; lets observers of the device (a tracer, the far device) see the wait.
  torch_compat::wait_for_event(device_of(stream_), event_, stream_);
}

double DeviceEvent::seconds_to(const DeviceEvent& other) const {
  return torch_compat::seconds_between(device_of(stream_), event_, other.event_, stream_);
}

}  // namespace motley
