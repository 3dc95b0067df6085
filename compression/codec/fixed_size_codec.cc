#include "compression/codec/fixed_size_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "compression/kernels/non_temporal.h"
#include "compression/kernels/piecewise.h"

namespace motley {
namespace {

class FixedSizeCodec : public Codec {
 public:
  explicit FixedSizeCodec(const FixedSizeFormat& format) : format_(format) {}

  std::string name() const override { return format_.name; }

  std::size_t bytes_max(std::size_t count) const override { return format_.bytes(count); }

  bool has_fixed_size() const override { return true; }

  std::size_t encode(std::span<const float> values_N, std::span<std::byte> wire_B) const override {
    const std::size_t bytes = bytes_max(values_N.size());
    MOTLEY_CHECK(wire_B.size() >= bytes, "buffer of {} bytes for {}", wire_B.size(), bytes);
    if (writes_non_temporal(bytes, values_N.size())) {
      encode_non_temporal(values_N, wire_B.data());
    } else {
      format_.encode(values_N, wire_B.data());
    }
    return bytes;
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    MOTLEY_TRY(check_size(wire_B.size(), values_N.size()));
    if (writes_non_temporal(values_N.size_bytes(), values_N.size())) {
      decode_non_temporal(wire_B.data(), values_N);
    } else {
      format_.decode(wire_B.data(), values_N);
    }
    return {};
  }

  Result<void> decode_add(std::span<const std::byte> wire_B,
                          std::span<float> sum_N) const override {
    MOTLEY_TRY(check_size(wire_B.size(), sum_N.size()));
    format_.decode_add(wire_B.data(), sum_N);
    return {};
  }

 private:
  // An equally large result is a plain copy, which is left to memcpy and its own choice of stores.
  [[nodiscard]] bool writes_non_temporal(std::size_t result_bytes, std::size_t count) const {
    return result_bytes >= kNonTemporalBytes && bytes_max(count) < count * sizeof(float);
  }

  void encode_non_temporal(std::span<const float> values_N, std::byte* wire_B) const {
    std::array<std::byte, kPieceValues * sizeof(float)> piece_B;
    while (!values_N.empty()) {
      const auto piece_N = values_N.first(std::min(values_N.size(), kPieceValues));
      const std::size_t bytes = format_.bytes(piece_N.size());
      format_.encode(piece_N, piece_B.data());
      copy_non_temporal(std::span(piece_B).first(bytes), wire_B);
      wire_B += bytes;
      values_N = values_N.subspan(piece_N.size());
    }
    fence_non_temporal();
  }

  void decode_non_temporal(const std::byte* wire_B, std::span<float> values_N) const {
    std::array<float, kPieceValues> decoded_N;
    while (!values_N.empty()) {
      const auto piece_N = std::span(decoded_N).first(std::min(values_N.size(), kPieceValues));
      format_.decode(wire_B, piece_N);
      copy_non_temporal(std::as_bytes(piece_N), std::as_writable_bytes(values_N).data());
      wire_B += format_.bytes(piece_N.size());
      values_N = values_N.subspan(piece_N.size());
    }
    fence_non_temporal();
  }

  Result<void> check_size(std::size_t bytes, std::size_t count) const {
    return check_message_bytes(format_.name, bytes, bytes_max(count), count);
  }

  FixedSizeFormat format_;
};

}  // namespace

Result<void> check_message_bytes(const char* codec,
                                 std::size_t bytes,
                                 std::size_t expected_bytes,
                                 std::size_t count) {
  if (bytes == expected_bytes) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{} message of {} bytes; {} values need {}", codec, bytes, count, expected_bytes),
      "the two ends use different codecs or shapes", "start both from one plan"};
}

std::unique_ptr<const Codec> make_fixed_size_codec(const FixedSizeFormat& format) {
  return std::make_unique<FixedSizeCodec>(format);
}

}  // namespace motley
