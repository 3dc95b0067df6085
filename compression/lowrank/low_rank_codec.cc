#include "compression/lowrank/low_rank_codec.h"

#include <fmt/format.h>

#include <string_view>

#include "base/check.h"

namespace motley {
namespace {

class LowRankCodec : public Codec {
 public:
  explicit LowRankCodec(const LowRankCoder& coder) : coder_(coder) {}

  std::string name() const override {
    const std::string low_rank = fmt::format("lowrank({})", coder_.rank());
    const std::string_view format = coder_.factors().name;
    return format == "none" ? low_rank : fmt::format("{}|{}", low_rank, format);
  }

  std::size_t bytes_max(std::size_t count) const override { return coder_.bytes(count); }

  bool has_fixed_size() const override { return true; }

  std::size_t encode(std::span<const float> values_N, std::span<std::byte> wire_B) const override {
    const std::size_t bytes = bytes_max(values_N.size());
    MOTLEY_CHECK(wire_B.size() >= bytes, "{} bytes of room for {}", wire_B.size(), bytes);
    coder_.encode(values_N, wire_B.data());
    return bytes;
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    MOTLEY_TRY(check_size(wire_B.size(), values_N.size()));
    coder_.decode(wire_B.data(), values_N);
    return {};
  }

  Result<void> decode_add(std::span<const std::byte> wire_B,
                          std::span<float> sum_N) const override {
    MOTLEY_TRY(check_size(wire_B.size(), sum_N.size()));
    coder_.decode_add(wire_B.data(), sum_N);
    return {};
  }

 private:
  Result<void> check_size(std::size_t bytes, std::size_t count) const {
    return check_message_bytes("lowrank", bytes, bytes_max(count), count);
  }

  LowRankCoder coder_;
};

}  // namespace

std::unique_ptr<const Codec> make_low_rank_codec(const LowRankCoder& coder) {
  return std::make_unique<LowRankCodec>(coder);
}

}  // namespace motley
