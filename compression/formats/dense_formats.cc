#include "compression/formats/dense_formats.h"

#include <bit>
#include <cstring>

#include "compression/facts/codec_facts.h"
#include "compression/formats/half.h"
#include "compression/kernels/piecewise.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

std::size_t bytes_of_fp32(std::size_t count) {
  return 4 * count;
}

void fp32_encode(std::span<const float> values_N, std::byte* wire_B) {
  if (!values_N.empty()) std::memcpy(wire_B, values_N.data(), values_N.size_bytes());
}

void fp32_decode(const std::byte* wire_B, std::span<float> values_N) {
  if (!values_N.empty()) std::memcpy(values_N.data(), wire_B, values_N.size_bytes());
}

}  // namespace

FixedSizeFormat fp32_format() {
  return {{fp32_encode, fp32_decode, decode_add_pieces<bytes_of_fp32, fp32_decode>,
           encode_feedback_pieces<bytes_of_fp32, fp32_encode, fp32_decode>},
          codec_facts(CodecKind::kNone).name,
          bytes_of_fp32};
}

FixedSizeFormat fp16_format() {
  return {best_half_kernels().fp16, codec_facts(CodecKind::kFp16).name, half_bytes};
}

FixedSizeFormat bf16_format() {
  return {best_half_kernels().bf16, codec_facts(CodecKind::kBf16).name, half_bytes};
}

}  // namespace motley
