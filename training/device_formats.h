// DeviceFormat: a codec's format in ATen operations on a device, so that the encoded message is
// copied between device and host instead of the values.
//
// Encoding produces the same bytes as the codec for the same values (compression/formats specifies
// them), and decoding the same values; a NaN remains a NaN.
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include "compression/facts/codec_facts.h"

namespace motley {

struct DeviceFormat {
  CodecKind codec = CodecKind::kNone;
  // Encodes all values of a contiguous fp32 tensor as one flat message; the result may have any
  // dtype.
  at::Tensor (*encode)(const at::Tensor& values);
  // Decodes the `count` values of a message, flat. REQUIRES: the message's bytes, flat and
  // contiguous.
  at::Tensor (*decode)(const at::Tensor& bytes_B, std::int64_t count);
};

// codec: Codec::name(). nullptr if the processor should run the codec: codecs that search values
// (topk, zstd) gain nothing on a device, and a device that shares the host's memory saves no
// transfer.
[[nodiscard]] const DeviceFormat* find_device_format(std::string_view codec, c10::Device device);

}  // namespace motley
