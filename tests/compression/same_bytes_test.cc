// Messages have these bytes on every processor. This also holds for builds for other processors,
// native or emulated. A change of these hashes is a change of the formats (docs/formats/frame.md).
#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/philox.h"
#include "compression/feedback/gradient_compressor.h"
#include "tests/compression/slices.h"

namespace motley {
namespace {

constexpr std::size_t kCount = 10'001;  // full blocks and rows, and a rest

// Values from -16 to 16 of all magnitudes, without functions of the C library, which differ in the
// last bits.
Floats gradient_of(std::uint64_t step) {
  Floats values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const PhiloxBlock random = philox4x32(20'261'124, step, i);
    const float size = 16.0F / static_cast<float>(1U << random[1] % 20);
    values[i] = (2 * to_unit_float(random[0]) - 1) * size;
  }
  return values;
}

struct Golden {
  const char* chain;
  std::uint64_t hash;
};

void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.chain;
}

class EveryGoldenChain : public testing::TestWithParam<Golden> {};

// The output of zstd depends on its version, so it is not among the chains.
TEST_P(EveryGoldenChain, SendsAndKeepsTheSameBytesOnEveryProcessor) {
  auto compressor = GradientCompressor::make({.chain = GetParam().chain}, kCount);
  ASSERT_TRUE(compressor.ok());
  Bytes all;
  for (std::int64_t step = 0; step < 3; ++step) {
    Bytes wire((*compressor)->bytes_max());
    wire.resize((*compressor)->encode(gradient_of(static_cast<std::uint64_t>(step)), step, wire));
    Floats values(kCount);
    ASSERT_TRUE((*compressor)->codec().decode(wire, values).ok());
    const auto meant = std::as_bytes(std::span(values));
    all.insert(all.end(), wire.begin(), wire.end());
    all.insert(all.end(), meant.begin(), meant.end());
  }
  const auto kept = std::as_bytes((*compressor)->residual());
  all.insert(all.end(), kept.begin(), kept.end());
  EXPECT_EQ(hash64(all), GetParam().hash) << std::hex << hash64(all);
}

INSTANTIATE_TEST_SUITE_P(Chains,
                         EveryGoldenChain,
                         testing::Values(Golden{"none", 0xD3F943D42921B40E},
                                         Golden{"fp16", 0xC46FC930960584CC},
                                         Golden{"bf16", 0x832D4423BCFBCEE4},
                                         Golden{"int8", 0xBBC6C81AA30A22E0},
                                         Golden{"int4", 0x8AE4D500B284F207},
                                         Golden{"topk(0.01)", 0x9706E8D195C54DE4},
                                         Golden{"topk(0.1)|fp16", 0x56231E36438C6598},
                                         Golden{"topk(0.25)|int8", 0xB428362B9EBD86E8}));

}  // namespace
}  // namespace motley
