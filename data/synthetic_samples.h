// Synthetic samples for models without tokens: learnable, without a file, for testing and measuring
// models. docs/formats/data.md.
#pragma once

#include <cstdint>
#include <memory>

#include "data/source.h"

namespace motley {

// SyntheticWindows with random targets, from which the inputs follow by a fixed rule with noise.
[[nodiscard]] std::unique_ptr<const Source> make_synthetic_samples(double holdout,
                                                                   const SampleFormat& format,
                                                                   std::int64_t seed);

}  // namespace motley
