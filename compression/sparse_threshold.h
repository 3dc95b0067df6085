// The magnitude from which on a value is among the largest of a slice, without sorting the slice.
//
// A sample of every s-th value gives it: its own n-th largest, where n is the same share of the
// sample as what is wanted is of the slice (about 1,500, so that the count comes out within 3 % in
// two of three cases). Over the calls the slices of one sender resemble each other. So a threshold
// is kept: a smaller sample only checks that it still fits, within 15 % and what chance may do, and
// after each pass it moves by a small power of the ratio of what it selected to what was wanted,
// which also takes out the error of the sample. The same calls give the same thresholds.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley {

// How many of `count` values are to be kept: the share `density`, and one at least, unless there is
// none. REQUIRES: 0 < density <= 1.
[[nodiscard]] std::size_t kept_target(std::size_t count, double density);

// How many are kept at most: a threshold may select somewhat more than the target.
[[nodiscard]] std::size_t kept_max(std::size_t count, double density);

struct Selection {
  std::uint32_t threshold_bits = 0;  // as compression/select_kernels.h takes it
  std::size_t kept_max = 0;          // the first so many in order of their places
};

class SparseThreshold {
 public:
  // value_at(i) is value i of the slice. Zeros are never selected. Where many values are equal to
  // the threshold, kept_max is the target.
  template <class ValueAt>
  [[nodiscard]] Selection select(std::size_t count, double density, const ValueAt& value_at) {
    if (threshold_ > 0) {
      sample(count, density, check_kept(count, density), value_at);
      if (still_fits(count, density)) return selection(kept_max(count, density));
    }
    sample(count, density, kChooseKept, value_at);
    return choose(count, density);
  }

  // After the pass: how many values of the slice reached the threshold, and how many should have.
  void adapt(std::size_t selected, std::size_t wanted);

  // 0 while none is chosen; then the next select() starts anew. What a checkpoint keeps.
  [[nodiscard]] float value() const { return threshold_; }

  void set_value(float threshold) { threshold_ = threshold; }

 private:
  static constexpr double kChooseKept = 1500;

  [[nodiscard]] static double check_kept(std::size_t count, double density);
  [[nodiscard]] static std::size_t stride(std::size_t count, double density, double kept);
  [[nodiscard]] std::size_t sampled_above(std::uint32_t threshold_bits) const;
  [[nodiscard]] bool still_fits(std::size_t count, double density) const;
  [[nodiscard]] Selection choose(std::size_t count, double density);
  [[nodiscard]] Selection selection(std::size_t kept) const;

  // Of a size in which about `kept` values are above the threshold.
  template <class ValueAt>
  void sample(std::size_t count, double density, double kept, const ValueAt& value_at) {
    const std::size_t step = stride(count, density, kept);
    magnitudes_.clear();
    for (std::size_t i = step / 2; i < count; i += step) {
      magnitudes_.push_back(std::bit_cast<std::uint32_t>(value_at(i)) & 0x7FFFFFFFU);
    }
  }

  float threshold_ = 0;
  std::vector<std::uint32_t> magnitudes_;  // of the sample, as bits
};

}  // namespace motley
