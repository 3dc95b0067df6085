#include "simulated/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/philox.h"

namespace motley {
namespace {

constexpr std::size_t kTable = std::size_t{1} << 18;  // 1 MiB: fits into a second-level cache
constexpr std::uint64_t kTableStream = ~std::uint64_t{0};
constexpr float kSizeOctaves = 4;

}  // namespace

Noise::Noise(std::uint64_t key) : key_(key), table_(kTable) {
  // Box-Muller transform: two normal values from two uniform ones.
  for (std::size_t i = 0; i < kTable; i += 2) {
    const PhiloxBlock block = philox4x32(key, kTableStream, i);
    const float radius = std::sqrt(-2.0F * std::log(1.0F - to_unit_float(block[0])));
    const float angle = 2.0F * std::numbers::pi_v<float> * to_unit_float(block[1]);
    table_[i] = radius * std::cos(angle);
    table_[i + 1] = radius * std::sin(angle);
  }
}

void Noise::fill(std::span<float> values, std::uint64_t stream, std::uint64_t piece) const {
  MOTLEY_CHECK(values.size() <= kPiece, "a piece of {} values", values.size());
  const PhiloxBlock block = philox4x32(key_, stream, piece);
  const float* from = table_.data() + block[0] % (kTable - kPiece + 1);
  const float size = std::exp2(kSizeOctaves * (to_unit_float(block[1]) - 0.5F));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = size * from[i];
}

void Noise::fill_all(std::span<float> values, std::uint64_t stream) const {
  for (std::size_t first = 0; first < values.size(); first += kPiece) {
    fill(values.subspan(first, std::min(kPiece, values.size() - first)), stream, first / kPiece);
  }
}

}  // namespace motley
