#include "data/identity.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace motley {

DataIdentity identify(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kBlockBytes = 64 << 10;
  constexpr std::uint64_t kBlocks = 256;
  Hasher128 hasher;
  hasher.add(fmt::format("{}\n", bytes.size()));
  if (bytes.size() <= kBlocks * kBlockBytes) {
    hasher.add(bytes);
  } else {
    const std::uint64_t last = bytes.size() - kBlockBytes;
    // Divided before multiplying, so that no length overflows.
    const std::uint64_t stride = last / (kBlocks - 1);
    for (std::uint64_t block = 0; block + 1 < kBlocks; ++block) {
      hasher.add(bytes.subspan(block * stride, kBlockBytes));
    }
    hasher.add(bytes.subspan(last));
  }
  return {bytes.size(), hasher.hex()};
}

DataIdentity identify(std::span<const std::span<const std::byte>> parts) {
  if (parts.size() == 1) return identify(parts.front());
  std::uint64_t bytes = 0;
  Hasher128 hasher;
  for (const auto part : parts) {
    hasher.add(identify(part).hash + '\n');
    bytes += part.size();
  }
  return {bytes, hasher.hex()};
}

DataIdentity identify_both(const DataIdentity& train, const DataIdentity& held_out) {
  Hasher128 hasher;
  hasher.add(train.hash + '\n');
  hasher.add(held_out.hash + '\n');
  return {train.bytes + held_out.bytes, hasher.hex()};
}

}  // namespace motley
