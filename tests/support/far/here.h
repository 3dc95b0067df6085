// The device and the streams that this thread works on, as LibTorch's guards set them.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "tests/support/far/vector_clock.h"

namespace motley::far {

[[nodiscard]] int current_device();
void use_device(int device);

// The current stream of that device.
[[nodiscard]] StreamNumber current_stream(int device);
void use_stream(StreamNumber stream);

[[nodiscard]] c10::Device torch_device(int device);
[[nodiscard]] c10::Stream torch_stream(StreamNumber stream);
// A device without an index is the current one.
[[nodiscard]] int device_index(const c10::Device& device);
[[nodiscard]] StreamNumber stream_number_of(const c10::Stream& stream);

}  // namespace motley::far
