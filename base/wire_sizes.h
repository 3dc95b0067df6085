// The sizes, in bytes, of what two ranks send each other whatever the model: the one place from
// which both who writes these messages (comm/, pipeline/execute/, training/) and who predicts their
// bytes (partitioner/cost/step_bytes.h) take them. The layouts are in docs/formats/frame.md; values
// have the size that their codec gives them (Codec::bytes_max).
#pragma once

#include <cstddef>
#include <cstdint>

namespace motley {

// The header of a frame, which precedes every payload.
inline constexpr std::size_t kFrameHeaderBytes = 64;

// The number of one token that a sample is to predict, as it travels to the rank of the loss.
using Target = std::int32_t;

// A vote: the number of tokens, the sum of their losses, how many were predicted right, how many
// of each follow and what follows the step; then each layer's number and the squared norm
// of its gradient, the step's factors, and a hash for each copy of parameters.
inline constexpr std::size_t kVoteHeadBytes = 8 + 8 + 8 + 4 * 4;
inline constexpr std::size_t kVoteLayerBytes = 4 + 8;

[[nodiscard]] constexpr std::size_t vote_bytes(std::size_t layers,
                                               std::size_t factors,
                                               std::size_t hashes) {
  return kVoteHeadBytes + layers * kVoteLayerBytes + factors * sizeof(double) +
         hashes * sizeof(std::uint64_t);
}

// The factors of a step, which rank 0 gives: the learning rate and two corrections of moments.
inline constexpr std::size_t kStepFactors = 3;

// The length that precedes each rank's payload in what rank 0 answers to all.
using GatheredLength = std::uint32_t;

}  // namespace motley
