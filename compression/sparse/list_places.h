// The places of the set bits of a mask, ascending: of what a sender keeps, and of what a mask in a
// message says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

// A list of n places may be written over up to so many more.
inline constexpr std::size_t kPlacesSlack = 32;

// Bit i % 64 of word i / 64 is place i. Returns how many there are. REQUIRES: at most 1,024 words;
// room for 64 places a word and kPlacesSlack.
using ListPlaces = std::size_t (*)(std::span<const std::uint64_t> words, std::uint16_t* places);

// One bit after the other: the reference, which the vector kernel equals.
[[nodiscard]] ListPlaces scalar_list_places();

// Returns the version with AVX-512's compression of lanes: it is as fast however many bits are set,
// while the reference mispredicts a branch for most words. nullptr where the processor, or the one
// this was compiled for, lacks VBMI2.
[[nodiscard]] ListPlaces avx512_list_places();

// The fastest that this processor has.
[[nodiscard]] ListPlaces best_list_places();

}  // namespace motley
