#include "compression/fixed_size_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "compression/sum_kernels.h"

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
    MOTLEY_TRY(check_size(wire_B.size(), values_N.size()));
    format_.decode(wire_B.data(), values_N);
    return {};
  }

  Result<void> decode_add(std::span<const std::byte> wire_B,
                          std::span<float> sum_N) const override {
    MOTLEY_TRY(check_size(wire_B.size(), sum_N.size()));
    std::array<float, kPieceValues> decoded_N;
    while (!sum_N.empty()) {
      const auto piece_N = std::span(decoded_N).first(std::min(sum_N.size(), kPieceValues));
      format_.decode(wire_B.data(), piece_N);
      sums_.add(piece_N, sum_N.first(piece_N.size()));
      wire_B = wire_B.subspan(format_.bytes(piece_N.size()));
      sum_N = sum_N.subspan(piece_N.size());
    }
    return {};
  }

 private:
  Result<void> check_size(std::size_t bytes, std::size_t count) const {
    const std::size_t expected_bytes = bytes_max(count);
    if (bytes == expected_bytes) return {};
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} message of {} bytes where {} values take {}", format_.name, bytes,
                             count, expected_bytes),
                 "the two ends do not use the same codec or shape", "start both from one plan"};
  }

  FixedSizeFormat format_;
  SumKernels sums_ = best_sum_kernels();
};

}  // namespace

std::unique_ptr<const Codec> make_fixed_size_codec(const FixedSizeFormat& format) {
  return std::make_unique<FixedSizeCodec>(format);
}

}  // namespace motley
