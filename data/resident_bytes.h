// The memory that a process needs to hold the data it loads, determined without reading the data.
#pragma once

#include <cstdint>

#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

// Non-zero for a folder of texts, which is joined, and of pictures, which are decoded to the
// model's size. 0 for mapped files, the pages of which the system can drop, for synthetic data, and
// if data.path is not visible from here. Includes data.holdout_path.
[[nodiscard]] std::int64_t resident_data_bytes(const DataConfig& data, const SampleFormat& sample);

}  // namespace motley
