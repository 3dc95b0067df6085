#include "compression/sparse/sparse_threshold.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <span>

namespace motley {
namespace {

// Larger samples are limited to every 101st value: a sample costs one cache line per value.
constexpr std::size_t kSampleFree = std::size_t{1} << 18;
constexpr std::size_t kSampleStride = 101;

// For candidates: the factor of the last threshold that bounds them, and the size of the sample
// that otherwise determines the bound.
constexpr float kBoundShare = 0.9F;
constexpr std::size_t kBoundSample = 4096;

constexpr std::uint32_t kSmallestBits = 1;
constexpr std::uint32_t kLargestBits = 0x7F7FFFFF;  // FLT_MAX: infinities and NaNs are large

// The count of gradients above a threshold falls with its power of -3 (heavy tails) to -8 (normal):
// an exponent of an eighth converges for all of them.
constexpr double kGain = 0.125;

// A magnitude's 31 bits are processed in three digits, highest first.
constexpr std::array<int, 3> kPartShifts = {20, 10, 0};
constexpr std::size_t kPartCount = std::size_t{1} << 11;
constexpr std::size_t kPartMask = kPartCount - 1;

struct Ranked {
  std::uint32_t bits = 0;
  std::size_t reached = 0;  // number of values at least as large, at least the rank
};

// The rank-th largest magnitude, rank from 1; uses the magnitudes as scratch. A radix selection:
// counts one digit after another, and continues with the magnitudes that share the digit. No branch
// depends on a value; std::nth_element's mispredictions took longer than all other work on a slice.
Ranked nth_largest(std::span<std::uint32_t> magnitudes, std::size_t rank) {
  std::size_t larger = 0;
  for (const int shift : kPartShifts) {
    std::array<std::uint32_t, kPartCount> counts{};
    for (const std::uint32_t magnitude : magnitudes) ++counts[magnitude >> shift & kPartMask];
    std::size_t part = kPartMask;
    for (; rank > larger + counts[part]; --part) larger += counts[part];
    std::size_t sharing = 0;
    for (const std::uint32_t magnitude : magnitudes) {
      magnitudes[sharing] = magnitude;
      sharing += (magnitude >> shift & kPartMask) == part ? 1 : 0;
    }
    magnitudes = magnitudes.first(sharing);
    if (sharing == 1) break;
  }
  return {magnitudes.front(), larger + magnitudes.size()};
}

}  // namespace

std::size_t selection_target(std::size_t count, double density) {
  const auto share = static_cast<std::size_t>(std::llround(density * static_cast<double>(count)));
  return std::min(count, std::max<std::size_t>(share, 1));
}

std::size_t selected_max(std::size_t count, double density) {
  const std::size_t target = selection_target(count, density);
  return std::min(count, target + target / 2 + 16);
}

std::size_t SparseThreshold::stride(std::size_t count, double density, double kept) {
  const auto most = static_cast<double>(std::max(count / kSampleStride, kSampleFree));
  const double wanted = std::min(kept / density, most);
  const auto step = static_cast<std::size_t>(static_cast<double>(count) / wanted);
  return step | 1;  // odd: rows of a matrix mostly have an even length
}

// Fewer for a small slice, which would otherwise be read twice.
double SparseThreshold::check_selected(std::size_t count, double density) {
  return std::clamp(static_cast<double>(selection_target(count, density)) / 16, 100.0, 400.0);
}

bool SparseThreshold::still_fits(std::size_t count, double density) const {
  const auto above = static_cast<double>(std::ranges::count_if(
      magnitudes_, [bits = std::bit_cast<std::uint32_t>(threshold_)](std::uint32_t magnitude) {
        return magnitude >= bits;
      }));
  const auto wanted = static_cast<double>(selection_target(magnitudes_.size(), density));
  // The sampling error of the share.
  const double chance = magnitudes_.size() == count ? 0 : std::sqrt(wanted);
  return 0.87 * wanted - chance <= above && above <= 1.15 * wanted + chance;
}

// Fewer than `rank` magnitudes are all values but the zeros.
Selection SparseThreshold::choose(std::vector<std::uint32_t>& magnitudes,
                                  std::size_t rank,
                                  std::size_t count,
                                  double density) {
  if (magnitudes.empty()) return selection(0);
  const Ranked least = rank <= magnitudes.size() ? nth_largest(magnitudes, rank) : Ranked{};
  threshold_ = std::bit_cast<float>(std::clamp(least.bits, kSmallestBits, kLargestBits));
  const bool tied = least.bits > 0 && least.reached > rank + rank / 10;
  return selection(tied ? selection_target(count, density) : selected_max(count, density));
}

std::uint32_t SparseThreshold::last_bound() const {
  if (!(threshold_ > 0)) return kLargestBits;
  return std::clamp(std::bit_cast<std::uint32_t>(kBoundShare * threshold_), kSmallestBits,
                    kLargestBits);
}

// The rank in the sample includes a margin for its sampling error.
std::uint32_t SparseThreshold::sampled_bound(std::span<const float> values_N, std::size_t wanted) {
  const std::size_t step = values_N.size() / kBoundSample | 1;  // odd, as stride()
  if (step == 1) return kSmallestBits;
  sample_every(step, values_N.size(), [=](std::size_t i) { return values_N[i]; });
  const double share = static_cast<double>(wanted) / static_cast<double>(step);
  const auto rank = static_cast<std::size_t>(share + 3 * std::sqrt(share) + 3);
  const Ranked bound = nth_largest(magnitudes_, std::min(rank, magnitudes_.size()));
  return std::clamp(bound.bits, kSmallestBits, kLargestBits);
}

Selection SparseThreshold::select_among(std::vector<std::uint32_t>& candidates,
                                        std::size_t count,
                                        double density) {
  return choose(candidates, selection_target(count, density), count, density);
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
