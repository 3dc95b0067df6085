#include "compression/sparse_threshold.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

namespace motley {
namespace {

// Sampled beyond this only as every 101st: a sample costs a line of cache a value.
constexpr std::size_t kSampleFree = std::size_t{1} << 18;
constexpr std::size_t kSampleStride = 101;

constexpr std::uint32_t kLargestBits = 0x7F7FFFFF;  // FLT_MAX: what is not finite is always large

// The tails of gradients fall off so that their count goes as a power of -3 (heavy) to -8 (normal)
// of the threshold: an eighth's power comes to rest for all of them.
constexpr double kGain = 0.125;

}  // namespace

std::size_t kept_target(std::size_t count, double density) {
  const auto share = static_cast<std::size_t>(std::llround(density * static_cast<double>(count)));
  return std::min(count, std::max<std::size_t>(share, 1));
}

std::size_t kept_max(std::size_t count, double density) {
  const std::size_t target = kept_target(count, density);
  return std::min(count, target + target / 2 + 16);
}

std::size_t SparseThreshold::stride(std::size_t count, double density, double kept) {
  const auto most = static_cast<double>(std::max(count / kSampleStride, kSampleFree));
  const double wanted = std::min(kept / density, most);
  const auto step = static_cast<std::size_t>(static_cast<double>(count) / wanted);
  return step | 1;  // odd: rows of a matrix mostly have an even length
}

// Fewer in a small slice, which would else be read twice.
double SparseThreshold::check_kept(std::size_t count, double density) {
  return std::clamp(static_cast<double>(kept_target(count, density)) / 16, 100.0, 400.0);
}

std::size_t SparseThreshold::sampled_above(std::uint32_t threshold_bits) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      magnitudes_, [=](std::uint32_t magnitude) { return magnitude >= threshold_bits; }));
}

bool SparseThreshold::still_fits(std::size_t count, double density) const {
  const auto above = static_cast<double>(sampled_above(std::bit_cast<std::uint32_t>(threshold_)));
  const auto wanted = static_cast<double>(kept_target(magnitudes_.size(), density));
  // What the share of a sample may be off by itself.
  const double chance = magnitudes_.size() == count ? 0 : std::sqrt(wanted);
  return 0.87 * wanted - chance <= above && above <= 1.15 * wanted + chance;
}

Selection SparseThreshold::choose(std::size_t count, double density) {
  if (magnitudes_.empty()) return selection(0);
  const std::size_t rank = kept_target(magnitudes_.size(), density);
  const auto last = magnitudes_.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(magnitudes_.begin(), last, magnitudes_.end(), std::greater<>());
  threshold_ = std::bit_cast<float>(std::clamp<std::uint32_t>(*last, 1, kLargestBits));
  const bool tied = sampled_above(std::bit_cast<std::uint32_t>(threshold_)) > rank + rank / 10;
  return selection(tied ? kept_target(count, density) : kept_max(count, density));
}

Selection SparseThreshold::selection(std::size_t kept) const {
  return {std::bit_cast<std::uint32_t>(std::clamp(threshold_, FLT_TRUE_MIN, FLT_MAX)), kept};
}

void SparseThreshold::adapt(std::size_t selected, std::size_t wanted) {
  if (selected == 0) {
    threshold_ = 0;
    return;
  }
  const double ratio = static_cast<double>(selected) / static_cast<double>(wanted);
  const auto moved = static_cast<float>(threshold_ * std::pow(ratio, kGain));
  threshold_ = std::clamp(moved, 0.0F, FLT_MAX);
}

}  // namespace motley
