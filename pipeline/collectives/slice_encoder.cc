#include "pipeline/collectives/slice_encoder.h"

#include "base/check.h"

namespace motley {

std::size_t CodecEncoder::bytes_max(std::size_t count) const {
  return codec_.bytes_max(count);
}

std::size_t CodecEncoder::encode(const WireSlice& /*slice*/,
                                 std::span<float> values_N,
                                 std::span<std::byte> wire_B) {
  const std::size_t bytes = codec_.encode(values_N, wire_B);
  const auto decoded = codec_.decode(wire_B.first(bytes), values_N);
  MOTLEY_CHECK(decoded.ok(), "codec '{}' cannot read what it wrote: {}", codec_.name(),
               decoded.error().what);
  return bytes;
}

Result<void> CodecEncoder::decode(std::span<const std::byte> wire_B,
                                  std::span<float> values_N) const {
  return codec_.decode(wire_B, values_N);
}

Result<void> CodecEncoder::decode_add(std::span<const std::byte> wire_B,
                                      std::span<float> sum_N) const {
  return codec_.decode_add(wire_B, sum_N);
}

}  // namespace motley
