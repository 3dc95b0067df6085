// Made-up samples for a model that takes no tokens: learnable, without a file, for trying and
// measuring models. docs/formats/data.md.
#pragma once

#include <cstdint>
#include <memory>

#include "data/source.h"

namespace motley {

// SyntheticWindows; a sample's targets are drawn, and its inputs follow from them by a fixed rule,
// with noise.
[[nodiscard]] std::unique_ptr<const Source> make_synthetic_samples(double holdout,
                                                                   const SampleFormat& format,
                                                                   std::int64_t seed);

}  // namespace motley
