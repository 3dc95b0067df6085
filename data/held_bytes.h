// What a process that loads samples holds of the data in memory, found without reading it.
#pragma once

#include <cstdint>

#include "job/config.h"
#include "models/spec/sample_format.h"

namespace motley {

// A folder of texts, joined, or of pictures, decoded to the model's size. 0 for data in files that
// are mapped, whose pages the system drops where memory is short; for data that is made; and where
// data.path is not seen from here.
[[nodiscard]] std::int64_t held_data_bytes(const DataConfig& data, const SampleFormat& sample);

}  // namespace motley
