// DeviceFormat: a codec's format in operations on a device, so that between it and the host go the
// bytes of the message and not the values.
//
// The bytes are the codec's own for the same values (compression/formats says which), and mean the
// same numbers; what is NaN stays NaN.
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

namespace motley {

struct DeviceFormat {
  std::string_view codec;  // Codec::name()
  // A message of all values of a contiguous fp32 tensor, flat, in numbers of any type.
  at::Tensor (*encode)(const at::Tensor& values);
  // The `count` values of a message, flat. REQUIRES: its bytes, flat and contiguous.
  at::Tensor (*decode)(const at::Tensor& bytes_B, std::int64_t count);
};

// nullptr where the device leaves the codec to the processor: codecs that look for something
// (topk, zstd) gain nothing there, and on a device that shares the host's memory nothing crosses.
[[nodiscard]] const DeviceFormat* find_device_format(std::string_view codec, c10::Device device);

}  // namespace motley
