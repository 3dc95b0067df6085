#include "compression/dense_codecs.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "compression/half.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

void fp32_encode(std::span<const float> values_N, std::byte* wire_B) {
  if (!values_N.empty()) std::memcpy(wire_B, values_N.data(), values_N.size_bytes());
}

void fp32_decode(const std::byte* wire_B, std::span<float> values_N) {
  if (!values_N.empty()) std::memcpy(values_N.data(), wire_B, values_N.size_bytes());
}

struct DenseFormat {
  const char* name;
  std::size_t value_bytes;
  void (*encode)(std::span<const float> values_N, std::byte* wire_B);
  void (*decode)(const std::byte* wire_B, std::span<float> values_N);
};

class DenseCodec : public Codec {
 public:
  explicit DenseCodec(const DenseFormat& format) : format_(format) {}

  std::string name() const override { return format_.name; }

  std::size_t bytes_max(std::size_t count) const override { return count * format_.value_bytes; }

  std::size_t encode(std::span<const float> values_N, std::span<std::byte> wire_B) const override {
    const std::size_t bytes = bytes_max(values_N.size());
    MOTLEY_CHECK(wire_B.size() >= bytes, "{} bytes of room for {}", wire_B.size(), bytes);
    format_.encode(values_N, wire_B.data());
    return bytes;
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    const std::size_t bytes = bytes_max(values_N.size());
    if (wire_B.size() != bytes) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} message of {} bytes where {} values take {}", format_.name,
                               wire_B.size(), values_N.size(), bytes),
                   "the two ends do not use the same codec or shape", "start both from one plan"};
    }
    format_.decode(wire_B.data(), values_N);
    return {};
  }

 private:
  DenseFormat format_;
};

}  // namespace

std::unique_ptr<const Codec> make_fp32_codec() {
  return std::make_unique<DenseCodec>(DenseFormat{"none", 4, fp32_encode, fp32_decode});
}

std::unique_ptr<const Codec> make_fp16_codec() {
  const HalfKernels& kernels = best_half_kernels();
  return std::make_unique<DenseCodec>(
      DenseFormat{"fp16", 2, kernels.fp16_encode, kernels.fp16_decode});
}

std::unique_ptr<const Codec> make_bf16_codec() {
  const HalfKernels& kernels = best_half_kernels();
  return std::make_unique<DenseCodec>(
      DenseFormat{"bf16", 2, kernels.bf16_encode, kernels.bf16_decode});
}

}  // namespace motley
