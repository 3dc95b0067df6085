// Non-temporal stores, for results that exceed the caches.
//
// A store to a line that is in no cache first loads the line. For a slice that exceeds the caches,
// half of the memory traffic would be lines that are read only to be overwritten. A result that
// fits a cache must not use them: its next reader would have to load it from memory.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

// A result of this size or more does not fit a core's private caches.
inline constexpr std::size_t kNonTemporalBytes = std::size_t{32} << 20;

// memcpy with non-temporal stores if the processor has them. Lines that the range covers only
// partly are written normally, so pieces of one result may meet at any position.
void copy_non_temporal(std::span<const std::byte> from_B, std::byte* to);

// Must be called after the last copy, before another thread is notified of the result.
void fence_non_temporal();

}  // namespace motley
