// Sizes of messages between two ranks: in bytes where they do not depend on the model, in elements
// for a boundary's values, whose codec decides their bytes (Codec::bytes_max). Both the code that
// writes these messages (comm/, pipeline/execute/, training/) and the code that predicts their
// bytes (partitioner/cost/step_bytes.h) use them. The layouts are in docs/formats/frame.md.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace motley {

// The header of a frame, which precedes every payload.
inline constexpr std::size_t kFrameHeaderBytes = 64;

// The size of a micro-batch's values at a boundary between two layers.
struct BoundarySize {
  // Elements of the tensors with a gradient. The boundary's codec encodes them forward, and their
  // gradient backward.
  std::int64_t floats = 0;
  // Bytes of the tensors without a gradient: transferred bit-exactly, forward only.
  std::int64_t exact_bytes = 0;

  // The size of the gradient.
  [[nodiscard]] constexpr BoundarySize gradient() const { return {floats, 0}; }

  // The size in memory, with floats as fp32.
  [[nodiscard]] constexpr std::int64_t bytes() const {
    return floats * static_cast<std::int64_t>(sizeof(float)) + exact_bytes;
  }

  friend auto operator<=>(const BoundarySize&, const BoundarySize&) = default;
};

// The id of a target token, as sent to the rank that computes the loss.
using Target = std::int32_t;

// A vote: the number of tokens, the sum of their losses, the number predicted correctly, the number
// of each of the following items and the action after the step; then each layer's number and the
// squared norm of its gradient, the step's factors, and a hash for each copy of parameters.
inline constexpr std::size_t kVoteHeadBytes = 8 + 8 + 8 + 4 * 4;
inline constexpr std::size_t kVoteLayerBytes = 4 + 8;

[[nodiscard]] constexpr std::size_t vote_bytes(std::size_t layers,
                                               std::size_t factors,
                                               std::size_t hashes) {
  return kVoteHeadBytes + layers * kVoteLayerBytes + factors * sizeof(double) +
         hashes * sizeof(std::uint64_t);
}

// The factors of a step, given by rank 0: the learning rate and two bias corrections.
inline constexpr std::size_t kStepFactors = 3;

// The length that precedes each rank's payload in rank 0's answer to all.
using GatheredLength = std::uint32_t;

}  // namespace motley
