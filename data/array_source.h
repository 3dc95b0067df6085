// The source of individual samples in files, each with its target: arrays and images.
#pragma once

#include <cstdint>
#include <memory>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"
#include "data/source.h"

namespace motley {

// Samples held out by the files, or else the share data.holdout of the samples, are never trained
// on. kData if a required part has no sample, or the samples do not fit the model. `work` counts
// what is read; nullptr: not counted.
[[nodiscard]] Result<std::unique_ptr<const Source>> make_array_source(ExampleFiles files,
                                                                      const DataConfig& data,
                                                                      const SampleFormat& format,
                                                                      std::int64_t seed,
                                                                      ProgressCounter* work);

}  // namespace motley
