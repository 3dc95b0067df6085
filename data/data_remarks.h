// Warnings about valid but probably unintended data, reported with their place before the first
// step. Training continues with the data as it is. Ordinary data causes none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/files/columns.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

// One line each, first those of the files themselves (ExampleFiles::notes). Reads all integer
// targets, and a few thousand evenly spread samples of everything else. REQUIRES: examples that fit
// the format (data/sample_maker.h).
[[nodiscard]] std::vector<std::string> example_remarks(const ExampleFiles& files,
                                                       const DataConfig& data,
                                                       const SampleFormat& format);

[[nodiscard]] std::vector<std::string> corpus_remarks(const Corpus& corpus, const DataConfig& data);

// A line if passages of the held-out tokens, of data.holdout_path, are also in the training tokens.
// Searches for a few of its first file in at most 256 MiB. REQUIRES: both have the same token type.
[[nodiscard]] std::optional<std::string> held_out_text_that_is_trained(const Corpus& train,
                                                                       const Corpus& held_out,
                                                                       const DataConfig& data);

}  // namespace motley
