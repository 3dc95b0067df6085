#include "compression/dense_formats.h"

#include <bit>
#include <cstring>

#include "compression/half.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

template <std::size_t ValueBytes>
std::size_t bytes_of(std::size_t count) {
  return count * ValueBytes;
}

void fp32_encode(std::span<const float> values_N, std::byte* wire_B) {
  if (!values_N.empty()) std::memcpy(wire_B, values_N.data(), values_N.size_bytes());
}

void fp32_decode(const std::byte* wire_B, std::span<float> values_N) {
  if (!values_N.empty()) std::memcpy(values_N.data(), wire_B, values_N.size_bytes());
}

}  // namespace

FixedSizeFormat fp32_format() {
  return {"none", bytes_of<4>, fp32_encode, fp32_decode};
}

FixedSizeFormat fp16_format() {
  const HalfKernels& kernels = best_half_kernels();
  return {"fp16", bytes_of<2>, kernels.fp16_encode, kernels.fp16_decode};
}

FixedSizeFormat bf16_format() {
  const HalfKernels& kernels = best_half_kernels();
  return {"bf16", bytes_of<2>, kernels.bf16_encode, kernels.bf16_decode};
}

}  // namespace motley
