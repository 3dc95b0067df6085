// Writes that go past the caches, for results that are larger than these.
//
// A store to a line that is in no cache first loads the line. Of a slice that no cache holds, half
// of what crosses the memory bus would be lines that are read only to be overwritten. What fits a
// cache must not go past it: the next reader would find it in memory only.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

// From this many bytes of a result on, no cache that cores have to themselves holds it.
inline constexpr std::size_t kNonTemporalBytes = std::size_t{32} << 20;

// memcpy, past the caches where the processor can. Lines that the range holds only in part are
// written as ever, so that pieces of one result may follow each other at any place.
void copy_non_temporal(std::span<const std::byte> from_B, std::byte* to);

// After the last copy, before another thread is told of the result.
void fence_non_temporal();

}  // namespace motley
