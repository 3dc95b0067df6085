// Corrects by bit operations the values that a device's own conversion rounds wrongly: devices
// differ in NaNs, and convert some finite values to infinity.
#include "training/device_formats.h"

#include <cfloat>

#include <ATen/ATen.h>

#include "compression/formats/block_quantise.h"
#include "models/device/compute_device.h"

namespace motley {
namespace {

constexpr std::int64_t kSign16 = 0x8000;
constexpr std::int64_t kFloatInf = 0x7F800000;
constexpr std::int64_t kQuietNan = 0x7FC00000;

// The upper 16 bits of each value, as a view.
at::Tensor upper_halves(const at::Tensor& values_N) {
  return values_N.view(at::kShort).view({-1, 2}).select(1, 1);
}

// `bit` where a value is NaN, else 0.
at::Tensor nan_bit(const at::Tensor& values_N, std::int64_t bit) {
  return at::ne(values_N, values_N).to(at::kShort).mul_(bit);
}

at::Tensor encode_bf16(const at::Tensor& values) {
  // From this magnitude on, bits are truncated instead of rounded: values above it would round to
  // infinity, or are infinite or NaN.
  constexpr std::int64_t kLargest = 0x7F7F;
  const at::Tensor values_N = values.view({-1});
  const at::Tensor upper_N = upper_halves(values_N);
  const at::Tensor is_large_N = upper_N.bitwise_and(kSign16 - 1).ge_(kLargest).to(at::kBool);
  const at::Tensor rounded_N = values_N.to(at::kBFloat16).view(at::kShort);
  return at::where(is_large_N, upper_N, rounded_N).bitwise_or_(nan_bit(values_N, 0x40));
}

at::Tensor decode_bf16(const at::Tensor& bytes_B, std::int64_t /*count*/) {
  return bytes_B.view(at::kBFloat16).to(at::kFloat);
}

at::Tensor encode_fp16(const at::Tensor& values) {
  constexpr double kLargest = 65504;
  constexpr std::int64_t kInf = 0x7C00;
  constexpr std::int64_t kPayload = 0x3FF;  // the part of a NaN's payload that is stored
  const at::Tensor values_N = values.view({-1});
  const at::Tensor rounded_N = values_N.clamp(-kLargest, kLargest).to(at::kHalf).view(at::kShort);
  const at::Tensor upper_N = upper_halves(values_N);
  const at::Tensor payload_N =
      values_N.view(at::kInt).bitwise_right_shift(13).bitwise_and_(kPayload).to(at::kShort);
  const at::Tensor special_N =
      upper_N.bitwise_and(-kSign16).bitwise_or_(kInf).bitwise_or_(payload_N).bitwise_or_(
          nan_bit(values_N, 0x200));
  constexpr std::int64_t kExponent = kFloatInf >> 16;
  const at::Tensor is_special_N = upper_N.bitwise_and(kExponent).eq(kExponent);
  return at::where(is_special_N, special_N, rounded_N);
}

at::Tensor decode_fp16(const at::Tensor& bytes_B, std::int64_t /*count*/) {
  return bytes_B.view(at::kHalf).to(at::kFloat);
}

constexpr auto kBlock = static_cast<std::int64_t>(kBlockValues);
constexpr auto kScaleBytes = static_cast<std::int64_t>(kBlockScaleBytes);

// As rows of `width` values; the last row is padded with zeros.
at::Tensor as_blocks(const at::Tensor& flat, std::int64_t width) {
  const std::int64_t lacking = (width - flat.size(0) % width) % width;
  return at::constant_pad_nd(flat, {0, lacking}).view({-1, width});
}

// Divides by tensors: division by a scalar may be implemented as multiplication by its inverse.
at::Tensor encode_int8(const at::Tensor& values) {
  const at::Tensor values_NK = as_blocks(values.view({-1}), kBlock);
  const at::Tensor magnitude_N = values_NK.view(at::kInt).bitwise_and(kFloatInf | 0x7FFFFF).amax(1);
  const auto number = [&](double value) { return at::full({}, value, values.options()); };
  const at::Tensor scale_N = magnitude_N.view(at::kFloat)
                                 .div(number(kInt8Largest))
                                 .clamp_(FLT_MIN, static_cast<double>(kInt8ScaleMax));
  // Blocks that are all zero or not finite have no codes.
  const at::Tensor is_zero_N = magnitude_N.eq(0);
  const at::Tensor is_coded_N = magnitude_N.lt(kFloatInf).logical_and_(magnitude_N.ne(0));
  const at::Tensor scale_bits_N = at::where(
      is_coded_N, scale_N.view(at::kInt),
      at::where(is_zero_N, at::zeros_like(magnitude_N), at::full_like(magnitude_N, kQuietNan)));
  const at::Tensor codes_NK = values_NK.mul(number(1).div(scale_N).unsqueeze(1))
                                  .round_()
                                  .clamp_(-kInt8Largest, kInt8Largest);
  const at::Tensor bytes_NK =
      at::where(is_coded_N.unsqueeze(1), codes_NK, at::zeros_like(codes_NK)).to(at::kChar);
  return at::cat({scale_bits_N.unsqueeze(1).view(at::kChar), bytes_NK}, 1)
      .view({-1})
      .narrow(0, 0,
              static_cast<std::int64_t>(int8_bytes(static_cast<std::size_t>(values.numel()))));
}

at::Tensor decode_int8(const at::Tensor& bytes_B, std::int64_t count) {
  const at::Tensor bytes_NK = as_blocks(bytes_B, kScaleBytes + kBlock).view(at::kChar);
  const at::Tensor scale_N = bytes_NK.narrow(1, 0, kScaleBytes).contiguous().view(at::kFloat);
  return bytes_NK.narrow(1, kScaleBytes, kBlock)
      .to(at::kFloat)
      .mul_(scale_N)
      .view({-1})
      .narrow(0, 0, count);
}

constexpr DeviceFormat kFormats[] = {
    {CodecKind::kFp16, encode_fp16, decode_fp16},
    {CodecKind::kBf16, encode_bf16, decode_bf16},
    {CodecKind::kInt8, encode_int8, decode_int8},
};

}  // namespace

const DeviceFormat* find_device_format(std::string_view codec, c10::Device device) {
  if (shares_host_memory(device)) return nullptr;
  const CodecFacts* facts = find_codec(codec);
  for (const DeviceFormat& format : kFormats) {
    if (facts != nullptr && format.codec == facts->kind) return &format;
  }
  return nullptr;
}

}  // namespace motley
