// The sending side of the chain link topk(DENSITY): selects a slice's largest values by magnitude,
// in blocks (compression/sparse/sparse_block.h). One pass over the slice adds the residual,
// selects, packs, and subtracts the sent values from the residual. A short slice is first added and
// marked as a whole, and its values are selected among the marked ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/codec/fixed_size_codec.h"
#include "compression/kernels/select_kernels.h"
#include "compression/sparse/sparse_threshold.h"

namespace motley {

struct SelectedValues;

// A message begins with the slice's number of values.
inline constexpr std::size_t kSparseHeaderBytes = 8;

// An upper bound of a message's bytes.
[[nodiscard]] std::size_t sparse_bytes_max(std::size_t count,
                                           double density,
                                           const FixedSizeFormat& format);

// Feedback: the state that a sender retains between the messages of one slice; updated by each. A
// span has one value for each of the slice, or is empty if unused.
struct Feedback {
  std::span<float> residual_N;  // not sent yet
  std::span<float> velocity_N;  // needs residual_N; the gradients' decaying sum
  float momentum = 0;           // the velocity's decay factor per step, from 0 to below 1
  // The values already contain the velocity, which is only reset where one is sent.
  bool is_gathered = false;

  [[nodiscard]] bool gathers() const { return !velocity_N.empty() && !is_gathered; }
};

// One thread at a time. Its only state between calls is the threshold.
class SparseEncoder {
 public:
  explicit SparseEncoder(const FixedSizeFormat& format) : format_(format) {}

  // Writes about density × N of values_N to wire_B and returns the bytes.
  //
  // With a residual, the values sent are those of the residual plus values_N, and the residual
  // retains the rest: for sent values the format's error. With a velocity, values_N are added to it
  // first, and the velocity is added to the residual. Where a value is sent, its velocity is reset
  // to 0; otherwise the gradient just sent would contribute again to later steps.
  //
  // A block with an infinity or a NaN is sent as not finite as a whole; residuals and velocities of
  // its values that are not finite become 0. REQUIRES: wire_B.size() >= sparse_bytes_max(N,
  // density), 0 < density <= 1.
  std::size_t encode(std::span<const float> values_N,
                     double density,
                     const Feedback& feedback,
                     std::span<std::byte> wire_B);

  // Discards the threshold of earlier slices.
  void reset() { threshold_ = {}; }

 private:
  [[nodiscard]] Selection select(std::span<const float> values_N,
                                 double density,
                                 const Feedback& feedback);
  void list_candidates(std::span<const float> marked_N);
  [[nodiscard]] Selection mark_exactly(std::span<const float> values_N,
                                       double density,
                                       const Feedback& feedback);
  void take_sent(SelectedValues& kept, const std::byte* values_B, const Feedback& block) const;

  FixedSizeFormat format_;
  SelectKernels kernels_ = best_select_kernels();
  SparseThreshold threshold_;
  std::vector<std::uint64_t> marks_;       // of a whole slice, if that is marked before encoding
  std::vector<std::uint32_t> candidates_;  // magnitudes, as bits
};

}  // namespace motley
