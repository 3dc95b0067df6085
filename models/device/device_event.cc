#include "models/device/device_event.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "models/device/torch_compat.h"

namespace motley {
namespace {

const c10::impl::DeviceGuardImplInterface& device_of(const c10::Stream& stream) {
  return *c10::impl::getDeviceGuardImpl(stream.device_type());
}

}  // namespace

DeviceEvent::DeviceEvent(const c10::Stream& stream) : stream_(stream) {
  device_of(stream_).record(&event_, stream_, stream_.device_index(),
                            c10::EventFlag::PYTORCH_DEFAULT);
}

DeviceEvent::~DeviceEvent() {
  device_of(stream_).destroyEvent(event_, stream_.device_index());
}

void DeviceEvent::hold_back(const c10::Stream& later) const {
  device_of(stream_).block(event_, later);
}

bool DeviceEvent::is_done() const {
  return device_of(stream_).queryEvent(event_);
}

void DeviceEvent::wait() const {
  if (is_done()) return;
  torch_compat::wait_for_event(device_of(stream_), event_, stream_);
}

}  // namespace motley
