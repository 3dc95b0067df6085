// What of data that a model can take is still hardly meant: each is told to a person before the
// first step, with the place, and trained on as it is. Only what ordinary data does not show.
#pragma once

#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/files/columns.h"
#include "job/config.h"
#include "models/spec/sample_format.h"

namespace motley {

// One line each. Reads all integer targets, and of all else a few thousand samples, evenly spread.
// REQUIRES: examples that fit the format (data/sample_maker.h).
[[nodiscard]] std::vector<std::string> example_remarks(const ExampleFiles& files,
                                                       const DataConfig& data,
                                                       const SampleFormat& format);

[[nodiscard]] std::vector<std::string> corpus_remarks(const Corpus& corpus, const DataConfig& data);

}  // namespace motley
