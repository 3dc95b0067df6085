// The sending side of the chain link topk(DENSITY): of a slice, the largest values by magnitude, in
// blocks (compression/sparse/sparse_block.h). One pass over the slice adds what was left before,
// selects, packs, and takes what is sent from what is left. A short slice is added and marked as a
// whole, and what it keeps chosen among what is marked, before any of it is packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/codec/fixed_size_codec.h"
#include "compression/kernels/select_kernels.h"
#include "compression/sparse/sparse_threshold.h"

namespace motley {

struct KeptValues;

// A message begins with the number of values that the slice has.
inline constexpr std::size_t kSparseHeaderBytes = 8;

// Upper bound of a message's bytes.
[[nodiscard]] std::size_t sparse_bytes_max(std::size_t count,
                                           double density,
                                           const FixedSizeFormat& format);

// Feedback is what a sender keeps between the messages of one slice, and changes with each. Each
// span has a value for each of the slice, or is empty where a sender goes without.
struct Feedback {
  std::span<float> residual_N;  // not sent yet
  std::span<float> velocity_N;  // needs residual_N; the gradients' decaying sum
  float momentum = 0;           // what is left of the velocity after a step, from 0 to below 1
  // The values hold the velocity already: it only starts anew where one is sent.
  bool is_gathered = false;

  [[nodiscard]] bool gathers() const { return !velocity_N.empty() && !is_gathered; }
};

// One thread at a time. What it keeps from call to call is the threshold.
class SparseEncoder {
 public:
  explicit SparseEncoder(const FixedSizeFormat& format) : format_(format) {}

  // Writes about density × N of values_N to wire_B and returns the bytes.
  //
  // With a residual, what is sent is from the residual plus values_N, and the residual keeps the
  // rest: of what is sent the error of the format. With a velocity, values_N go into that first,
  // and the residual takes it up; where a value is sent, the velocity starts anew from 0 (else the
  // same gradient would push on after it was sent).
  //
  // A block that holds an infinity or a NaN is sent as not finite, whatever else it holds; the
  // residual and velocity of what is not finite become 0. REQUIRES: wire_B.size() >=
  // sparse_bytes_max(N, density), 0 < density <= 1.
  std::size_t encode(std::span<const float> values_N,
                     double density,
                     const Feedback& feedback,
                     std::span<std::byte> wire_B);

  // Forgets the threshold of the slices before.
  void reset() { threshold_ = {}; }

 private:
  [[nodiscard]] Selection select(std::span<const float> values_N,
                                 double density,
                                 const Feedback& feedback);
  void list_candidates(std::span<const float> marked_N);
  [[nodiscard]] Selection mark_exactly(std::span<const float> values_N,
                                       double density,
                                       const Feedback& feedback);
  void take_sent(KeptValues& kept, const std::byte* values_B, const Feedback& block) const;

  FixedSizeFormat format_;
  SelectKernels kernels_ = best_select_kernels();
  SparseThreshold threshold_;
  std::vector<std::uint64_t> marks_;  // of a whole slice, where that is marked before it is written
  std::vector<std::uint32_t> candidates_;  // magnitudes, as bits
};

}  // namespace motley
