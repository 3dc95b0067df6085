// Which corpus this is: its length, and a hash of blocks of it that takes no longer for 100 GB than
// for 100 MB. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <span>

#include "data/source.h"

namespace motley {

// A pure function of the bytes. Up to 16 MiB every byte counts; beyond, 256 blocks of 64 KiB from
// the first to the last, evenly spread, so that a change between them is not noticed.
[[nodiscard]] DataIdentity identify(std::span<const std::byte> bytes);

// Of data in several parts, whose order and lengths count. REQUIRES: at least one.
[[nodiscard]] DataIdentity identify(std::span<const std::span<const std::byte>> parts);

}  // namespace motley
