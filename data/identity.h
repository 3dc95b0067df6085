// A corpus's fingerprint: its length, and a hash of sampled blocks, which takes no longer for 100
// GB than for 100 MB. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <span>

#include "data/source.h"

namespace motley {

// A pure function of the bytes. Up to 16 MiB it includes every byte; beyond, 256 evenly spread
// blocks of 64 KiB from the first to the last, so that a change between them is not detected.
[[nodiscard]] DataIdentity identify(std::span<const std::byte> bytes);

// For data in several parts, the order and lengths of which are included. REQUIRES: at least one.
[[nodiscard]] DataIdentity identify(std::span<const std::span<const std::byte>> parts);

// For training data with held-out data of its own.
[[nodiscard]] DataIdentity identify_both(const DataIdentity& train, const DataIdentity& held_out);

}  // namespace motley
