// Samples a file's bytes: evenly spread blocks.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

// Calls look(block) for up to 32 blocks of 64 KiB. Each starts at a multiple of eight and has a
// multiple of eight bytes (except for the last bytes of a short file).
template <class Look>
void for_spread_blocks(std::span<const std::byte> bytes, const Look& look) {
  constexpr std::size_t kBlockBytes = 64 << 10;
  constexpr std::size_t kBlocks = 32;
  if (bytes.size() <= kBlocks * kBlockBytes) {
    look(bytes);
    return;
  }
  const std::size_t stride = (bytes.size() - kBlockBytes) / (kBlocks - 1) / 8 * 8;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    look(bytes.subspan(block * stride, kBlockBytes));
  }
}

}  // namespace motley
