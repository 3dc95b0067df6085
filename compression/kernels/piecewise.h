// decode_add() and encode_feedback() composed of the other kernels of a format: the reference for
// fused kernels, and the fallback without them.
//
// A message is also the concatenation of its pieces' messages. So a slice is processed piece by
// piece: each is added, encoded and read back while it is in the L1 cache, and the next one is
// prefetched. The slice crosses the memory bus once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "compression/kernels/add_kernels.h"
#include "compression/kernels/prefetch.h"

namespace motley {

// 2 KiB as fp32, of which the L1 cache holds several and the next pieces too; a multiple of every
// format's block.
inline constexpr std::size_t kPieceValues = 512;

// Bytes(count): the size of a message.
template <auto Bytes, auto Decode>
void decode_add_pieces(const std::byte* wire_B, std::span<float> sum_N) {
  const AddKernels& sums = best_add_kernels();
  std::array<float, kPieceValues> decoded_N;
  while (!sum_N.empty()) {
    const auto piece_N = std::span(decoded_N).first(std::min(sum_N.size(), kPieceValues));
    Decode(wire_B, piece_N);
    sums.add(piece_N, sum_N.first(piece_N.size()));
    wire_B += Bytes(piece_N.size());
    sum_N = sum_N.subspan(piece_N.size());
  }
}

template <auto Bytes, auto Encode, auto Decode>
void encode_feedback_pieces(std::span<const float> gradient_N,
                            std::span<float> residual_N,
                            std::byte* wire_B) {
  const AddKernels& sums = best_add_kernels();
  std::array<float, kPieceValues> sent_N;
  while (!residual_N.empty()) {
    const auto piece_N = residual_N.first(std::min(residual_N.size(), kPieceValues));
    const auto piece_sent_N = std::span(sent_N).first(piece_N.size());
    const std::size_t next = piece_N.size();
    prefetch_values(residual_N.subspan(next, std::min(residual_N.size() - next, kPieceValues)));
    prefetch_values(gradient_N.subspan(next, std::min(gradient_N.size() - next, kPieceValues)));
    sums.add(gradient_N.first(next), piece_N);
    Encode(piece_N, wire_B);
    Decode(wire_B, piece_sent_N);
    sums.subtract_sent(piece_sent_N, piece_N);
    wire_B += Bytes(next);
    gradient_N = gradient_N.subspan(next);
    residual_N = residual_N.subspan(next);
  }
}

}  // namespace motley
