// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC'11). A draw is a pure function of (key, counter), so initial values, dropout masks
// and data order depend on (seed, name, step, …) and never on rank, plan or history.
#pragma once

#include <array>
#include <cstdint>

namespace motley {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Philox's constants, also used by kernels that compute many blocks in parallel.
struct Philox {
  static constexpr int kRounds = 10;
  static constexpr std::uint32_t kMul0 = 0xD2511F53;
  static constexpr std::uint32_t kMul1 = 0xCD9E8D57;
  static constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  static constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
};

[[nodiscard]] constexpr PhiloxBlock philox4x32(std::uint64_t key, PhiloxBlock counter) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{Philox::kMul0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{Philox::kMul1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += Philox::kWeyl0;
    key1 += Philox::kWeyl1;
  }
  return counter;
}

// Block number `block` of stream `stream` under `key`.
[[nodiscard]] constexpr PhiloxBlock philox4x32(std::uint64_t key,
                                               std::uint64_t stream,
                                               std::uint64_t block) {
  return philox4x32(key,
                    {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
}

// Uniform in [0, 1) with 24 bits.
[[nodiscard]] constexpr float to_unit_float(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1.0p-24F;
}

// Uniform in (0, 1): the midpoints of 2^32 equal parts.
[[nodiscard]] constexpr double to_open_unit(std::uint32_t bits) {
  return (bits + 0.5) * 0x1.0p-32;
}

}  // namespace motley
