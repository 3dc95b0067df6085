// The synthetic corpus: learnable, without a file, for benchmarks and tests.
#pragma once

#include <cstdint>
#include <memory>

#include "data/source.h"

namespace motley {

inline constexpr std::uint64_t kSyntheticWindows = 1 << 16;

// How many of them, the last ones, are held out.
[[nodiscard]] std::uint64_t synthetic_eval_windows(double holdout);

// 65,536 windows, the last share `holdout` of them held out. In each, token 0 is uniform, and token
// t + 1 is (token t + 7) mod vocab with probability 7/8, else uniform. A model that has learnt it
// reaches a loss of -c ln c - (1 - c) ln((1 - c) / (vocab - 1)) nats with c = 7/8 + 1/(8 vocab).
// A window's tokens do not depend on the seed; the order of the windows does.
[[nodiscard]] std::unique_ptr<const Source> make_synthetic_source(double holdout,
                                                                  int vocab,
                                                                  std::int64_t seed);

}  // namespace motley
