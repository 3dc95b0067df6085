// The source of samples that lie in files one by one, each with its target: arrays and images.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/work_counter.h"
#include "data/files/columns.h"
#include "data/source.h"

namespace motley {

// What was held out in the files, or else the share data.holdout of the samples, is never trained
// on. kData when a part that is wanted has no sample, or the samples are not what the model takes.
// `work` counts what is read meanwhile; nullptr: nobody does.
[[nodiscard]] Result<std::unique_ptr<const Source>> make_array_source(ExampleFiles files,
                                                                      const DataConfig& data,
                                                                      const SampleFormat& format,
                                                                      std::int64_t seed,
                                                                      WorkCounter* work);

}  // namespace motley
