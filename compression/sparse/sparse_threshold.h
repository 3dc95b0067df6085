// The magnitude threshold of a slice's largest values, without sorting the slice.
//
// A sample of every s-th value provides it: its own n-th largest, where n is the same share of the
// sample as the target is of the slice (about 1,500, so that the count is within 3 % in two of
// three cases). Over the calls the slices of one sender are similar. So the threshold is retained:
// a smaller sample only checks that it still fits, within 15 % and the sampling error. After each
// pass it moves by a small power of the ratio of selected to wanted values, which also corrects the
// sample's error. Equal calls yield equal thresholds.
//
// For a slice so short that the sample would be nearly all of it, as in all-reduces, the exact
// threshold is better: the wanted-th largest of some candidates, all values above a bound below the
// threshold. The bound is slightly less than the last threshold or, if that yields too few or too
// many candidates, from a coarse sample. compression/sparse/sparse_encoder.h marks the candidates
// during its one pass over the slice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace motley {

// The number of `count` values to select: the share `density`, and at least one unless there are
// none. REQUIRES: 0 < density <= 1.
[[nodiscard]] std::size_t selection_target(std::size_t count, double density);

// The maximum number selected: a threshold may select somewhat more than the target.
[[nodiscard]] std::size_t selected_max(std::size_t count, double density);

struct Selection {
  std::uint32_t threshold_bits = 0;  // as in compression/kernels/select_kernels.h
  std::size_t selected_max = 0;      // only the first so many by position
};

class SparseThreshold {
 public:
  // value_at(i) is value i of the slice. Zeros are never selected. If many values equal the
  // threshold, selected_max is the target.
  template <class ValueAt>
  [[nodiscard]] Selection select(std::size_t count, double density, const ValueAt& value_at) {
    if (threshold_ > 0) {
      sample(count, density, check_selected(count, density), value_at);
      if (still_fits(count, density)) return selection(selected_max(count, density));
    }
    sample(count, density, kChooseSelected, value_at);
    return choose(magnitudes_, selection_target(magnitudes_.size(), density), count, density);
  }

  // Returns whether the exact threshold costs almost nothing more.
  [[nodiscard]] static bool is_exact(std::size_t count, double density) {
    return stride(count, density, kChooseSelected) == 1;
  }

  // A bound of the candidates, as bits, from the last threshold; without one, only values that are
  // not finite reach it.
  [[nodiscard]] std::uint32_t last_bound() const;

  // Returns whether the number of candidates is sufficient and small enough to rank them.
  [[nodiscard]] static bool enough(std::size_t candidates, std::size_t wanted) {
    return wanted <= candidates && candidates <= kCandidatesMost * wanted;
  }

  // A bound from the slice itself that yields too few candidates in one slice of hundreds. 1, which
  // every value but 0 reaches, for a slice that is hardly larger than the sample.
  [[nodiscard]] std::uint32_t sampled_bound(std::span<const float> values_N, std::size_t wanted);

  // candidates: the magnitudes above some bound, as bits; modified. If there are fewer than wanted,
  // they must be all values but the zeros.
  [[nodiscard]] Selection select_among(std::vector<std::uint32_t>& candidates,
                                       std::size_t count,
                                       double density);

  // After the pass: the number of values that reached the threshold, and the number wanted.
  void adapt(std::size_t selected, std::size_t wanted);

  // 0 if none is chosen; the next select() then starts anew.
  [[nodiscard]] float value() const { return threshold_; }

 private:
  static constexpr double kChooseSelected = 1500;
  static constexpr std::size_t kCandidatesMost = 4;  // per wanted value

  [[nodiscard]] static double check_selected(std::size_t count, double density);
  [[nodiscard]] static std::size_t stride(std::size_t count, double density, double kept);
  [[nodiscard]] bool still_fits(std::size_t count, double density) const;
  [[nodiscard]] Selection choose(std::vector<std::uint32_t>& magnitudes,
                                 std::size_t rank,
                                 std::size_t count,
                                 double density);
  [[nodiscard]] Selection selection(std::size_t kept) const;

  // Takes a sample large enough that about `kept` of its values are above the threshold.
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
