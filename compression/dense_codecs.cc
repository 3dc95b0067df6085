#include "compression/dense_codecs.h"

#include <bit>
#include <cstring>

#include "compression/fixed_size_codec.h"
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

std::unique_ptr<const Codec> make_fp32_codec() {
  return make_fixed_size_codec({"none", bytes_of<4>, fp32_encode, fp32_decode});
}

std::unique_ptr<const Codec> make_fp16_codec() {
  const HalfKernels& kernels = best_half_kernels();
  return make_fixed_size_codec({"fp16", bytes_of<2>, kernels.fp16_encode, kernels.fp16_decode});
}

std::unique_ptr<const Codec> make_bf16_codec() {
  const HalfKernels& kernels = best_half_kernels();
  return make_fixed_size_codec({"bf16", bytes_of<2>, kernels.bf16_encode, kernels.bf16_decode});
}

}  // namespace motley
