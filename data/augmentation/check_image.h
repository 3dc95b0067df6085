// Checks that data.mean, data.std and data.augment fit the model and the samples.
#pragma once

#include <cstddef>
#include <optional>

#include "base/result.h"
#include "data/files/columns.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

// The input that these keys apply to: the only one of floats, or the only one at all.
[[nodiscard]] std::optional<std::size_t> image_of(const SampleFormat& format);

// kData, with the key. REQUIRES: `examples` has the inputs of `format`, in their shapes.
[[nodiscard]] Result<void> check_image(const DataConfig& data,
                                       const SampleFormat& format,
                                       const Examples& examples);

}  // namespace motley
