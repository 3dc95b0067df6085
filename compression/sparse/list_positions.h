// The positions of a mask's set bits, ascending: of the values that a sender selected, or of a mask
// in a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

// A list of n positions may write up to this many entries beyond n.
inline constexpr std::size_t kPositionsSlack = 32;

// Bit i % 64 of word i / 64 is position i. Returns the number of set bits. REQUIRES: at most 1,024
// words; space for 64 positions per word and kPositionsSlack.
using ListPositions = std::size_t (*)(std::span<const std::uint64_t> words, std::uint16_t* places);

// One bit at a time: the reference, which the vector kernel matches.
[[nodiscard]] ListPositions scalar_list_positions();

// Returns the version with AVX-512's lane compression. Its speed does not depend on the number of
// set bits, while the reference mispredicts a branch in most words. nullptr if the processor or the
// build target lacks VBMI2.
[[nodiscard]] ListPositions avx512_list_positions();

// The fastest version that this processor supports.
[[nodiscard]] ListPositions best_list_positions();

}  // namespace motley
