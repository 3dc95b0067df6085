// The magnitude from which on a value is among the largest of a slice, without sorting the slice.
//
// A sample of every s-th value gives it: its own n-th largest, where n is the same share of the
// sample as what is wanted is of the slice (about 1,500, so that the count comes out within 3 % in
// two of three cases). Over the calls the slices of one sender resemble each other. So a threshold
// is kept: a smaller sample only checks that it still fits, within 15 % and what chance may do, and
// after each pass it moves by a small power of the ratio of what it selected to what was wanted,
// which also takes out the error of the sample. The same calls give the same thresholds.
//
// A slice so short that nearly all of it would be the sample, as those of sums are, is better
// served by its exact threshold: the wanted-th largest of some candidates, all values from a bound
// on that is below the threshold. The bound is a little less than the last threshold or, where that
// leaves too few or too many, comes from a coarse sample. compression/sparse/sparse_encoder.h marks
// the candidates on the way of its one pass over the slice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace motley {

// How many of `count` values are to be kept: the share `density`, and one at least, unless there is
// none. REQUIRES: 0 < density <= 1.
[[nodiscard]] std::size_t kept_target(std::size_t count, double density);

// How many are kept at most: a threshold may select somewhat more than the target.
[[nodiscard]] std::size_t kept_max(std::size_t count, double density);

struct Selection {
  std::uint32_t threshold_bits = 0;  // as compression/kernels/select_kernels.h takes it
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
    return choose(magnitudes_, kept_target(magnitudes_.size(), density), count, density);
  }

  // Returns whether the exact threshold is as good as free.
  [[nodiscard]] static bool is_exact(std::size_t count, double density) {
    return stride(count, density, kChooseKept) == 1;
  }

  // A bound of the candidates, as bits, from the last threshold; without one, only what is not
  // finite reaches it.
  [[nodiscard]] std::uint32_t last_bound() const;

  // Returns whether so many candidates are neither too few nor more than are worth to be put in
  // order.
  [[nodiscard]] static bool enough(std::size_t candidates, std::size_t wanted) {
    return wanted <= candidates && candidates <= kCandidatesMost * wanted;
  }

  // A bound from the slice itself that leaves too few in one slice of hundreds. 1, which every
  // value but 0 reaches, of a slice that is hardly larger than the sample.
  [[nodiscard]] std::uint32_t sampled_bound(std::span<const float> values_N, std::size_t wanted);

  // candidates: the magnitudes from some bound on, as bits; used up. All but
  // zeros where they are fewer than wanted.
  [[nodiscard]] Selection select_among(std::vector<std::uint32_t>& candidates,
                                       std::size_t count,
                                       double density);

  // After the pass: how many values of the slice reached the threshold, and how many should have.
  void adapt(std::size_t selected, std::size_t wanted);

  // 0 while none is chosen; then the next select() starts anew.
  [[nodiscard]] float value() const { return threshold_; }

 private:
  static constexpr double kChooseKept = 1500;
  static constexpr std::size_t kCandidatesMost = 4;  // for each that is wanted

  [[nodiscard]] static double check_kept(std::size_t count, double density);
  [[nodiscard]] static std::size_t stride(std::size_t count, double density, double kept);
  [[nodiscard]] bool still_fits(std::size_t count, double density) const;
  [[nodiscard]] Selection choose(std::vector<std::uint32_t>& magnitudes,
                                 std::size_t rank,
                                 std::size_t count,
                                 double density);
  [[nodiscard]] Selection selection(std::size_t kept) const;

  // Takes a sample of a size in which about `kept` values are above the threshold.
  template <class ValueAt>
  void sample(std::size_t count, double density, double kept, const ValueAt& value_at) {
    sample_every(stride(count, density, kept), count, value_at);
  }

  template <class ValueAt>
  void sample_every(std::size_t step, std::size_t count, const ValueAt& value_at) {
    magnitudes_.clear();
    for (std::size_t i = step / 2; i < count; i += step) {
      magnitudes_.push_back(std::bit_cast<std::uint32_t>(value_at(i)) & 0x7FFFFFFFU);
    }
  }

  float threshold_ = 0;
  std::vector<std::uint32_t> magnitudes_;  // of the sample, as bits
};

}  // namespace motley
