#include "compression/sparse/sparse_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "compression/sparse/sparse_block.h"
#include "compression/sparse/sparse_encoder.h"

namespace motley {
namespace {

Error damaged(const std::string& cause) {
  return {ErrorCode::kCorrupt, "unreadable topk message", cause,
          "start both ends from one plan; if it happens again, check the network and the memory"};
}

void write_values(const SelectedValues& kept, std::span<float> block_N) {
  const float others = kept.finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  std::ranges::fill(block_N, others);
  for (std::size_t i = 0; i < kept.count; ++i) block_N[kept.places[i]] = kept.values[i];
}

void add_values(const SelectedValues& kept, std::span<float> block_N) {
  if (!kept.finite) std::ranges::fill(block_N, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < kept.count; ++i) block_N[kept.places[i]] += kept.values[i];
}

class SparseCodec : public Codec {
 public:
  explicit SparseCodec(const SparseOptions& options) : options_(options) {}

  std::string name() const override {
    const std::string topk = fmt::format("topk({})", options_.density);
    const std::string_view format = options_.format.name;
    return format == "none" ? topk : fmt::format("{}|{}", topk, format);
  }

  std::size_t bytes_max(std::size_t count) const override {
    return sparse_bytes_max(count, options_.density_max, options_.format);
  }

  bool has_fixed_size() const override { return false; }

  std::size_t encode(std::span<const float> values_N, std::span<std::byte> wire_B) const override {
    return SparseEncoder(options_.format).encode(values_N, options_.density, {}, wire_B);
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    return read_blocks(wire_B, values_N, write_values);
  }

  Result<void> decode_add(std::span<const std::byte> wire_B,
                          std::span<float> sum_N) const override {
    return read_blocks(wire_B, sum_N, add_values);
  }

 private:
  // Calls use(kept, block) for each block of values_N.
  template <class Use>
  Result<void> read_blocks(std::span<const std::byte> wire_B,
                           std::span<float> values_N,
                           const Use& use) const {
    if (wire_B.size() > bytes_max(values_N.size())) {
      return damaged(fmt::format("{} bytes; {} values need at most {}", wire_B.size(),
                                 values_N.size(), bytes_max(values_N.size())));
    }
    std::uint64_t count = 0;
    if (wire_B.size() < kSparseHeaderBytes) return damaged("it ends within its header");
    std::memcpy(&count, wire_B.data(), kSparseHeaderBytes);
    if (count != values_N.size()) {
      return damaged(fmt::format("it has {} values instead of {}", count, values_N.size()));
    }
    wire_B = wire_B.subspan(kSparseHeaderBytes);
    SelectedValues kept;
    while (!values_N.empty()) {
      const auto block_N = values_N.first(std::min(values_N.size(), kSparseBlockValues));
      MOTLEY_ASSIGN(const std::size_t bytes,
                    read_sparse_block(wire_B, block_N.size(), options_.format, kept));
      use(kept, block_N);
      wire_B = wire_B.subspan(bytes);
      values_N = values_N.subspan(block_N.size());
    }
    if (!wire_B.empty()) return damaged("bytes follow its last block");
    return {};
  }

  SparseOptions options_;
};

}  // namespace

std::unique_ptr<const Codec> make_sparse_codec(const SparseOptions& options) {
  MOTLEY_CHECK(
      0 < options.density && options.density <= options.density_max && options.density_max <= 1,
      "density {}, at most {}", options.density, options.density_max);
  return std::make_unique<SparseCodec>(options);
}

}  // namespace motley
