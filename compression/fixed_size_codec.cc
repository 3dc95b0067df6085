#include "compression/fixed_size_codec.h"

#include <fmt/format.h>

#include "base/check.h"

namespace motley {
namespace {

class FixedSizeCodec : public Codec {
 public:
  explicit FixedSizeCodec(const FixedSizeFormat& format) : format_(format) {}

  std::string name() const override { return format_.name; }

  std::size_t bytes_max(std::size_t count) const override { return format_.bytes(count); }

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
  FixedSizeFormat format_;
};

}  // namespace

std::unique_ptr<const Codec> make_fixed_size_codec(const FixedSizeFormat& format) {
  return std::make_unique<FixedSizeCodec>(format);
}

}  // namespace motley
