#include "tests/support/far/here.h"

#include <map>

#include <c10/util/Exception.h>

#include "tests/support/far/far_state.h"

namespace motley::far {
namespace {

thread_local int device_here = 0;
thread_local std::map<int, StreamNumber> streams_here;  // [device]; absent: the default stream

}  // namespace

int current_device() {
  return device_here;
}

void use_device(int device) {
  TORCH_CHECK(device >= 0 && device < FarState::get().devices(), "invalid device ordinal ", device);
  device_here = device;
}

StreamNumber current_stream(int device) {
  const auto found = streams_here.find(device);
  return found == streams_here.end() ? stream_number(device, 0) : found->second;
}

void use_stream(StreamNumber stream) {
  streams_here[stream / kStreamsPerDevice] = stream;
}

c10::Device torch_device(int device) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)};
}

c10::Stream torch_stream(StreamNumber stream) {
  return c10::Stream(c10::Stream::UNSAFE, torch_device(stream / kStreamsPerDevice),
                     stream % kStreamsPerDevice);
}

int device_index(const c10::Device& device) {
  return device.has_index() ? device.index() : current_device();
}

StreamNumber stream_number_of(const c10::Stream& stream) {
  return stream_number(device_index(stream.device()), static_cast<int>(stream.id()));
}

}  // namespace motley::far
