// data.holdout_path: samples for evaluation that are apart from the training data of data.path, of
// the same kind. docs/formats/data.md.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

[[nodiscard]] inline bool has_held_out_path(const DataConfig& data) {
  return !data.holdout_path.empty();
}

// The configuration that reads the held-out data: with data.holdout_path as its path.
[[nodiscard]] DataConfig held_out_data(const DataConfig& data);

// An error of the held-out data, with its key instead of data.path.
[[nodiscard]] Error of_held_out_path(Error error);

// kConfig if the held-out samples would be training samples: both paths are the same;
// data.holdout_path lies within text or the pictures to train on; or text lies within
// data.holdout_path. REQUIRES: has_held_out_path(data).
[[nodiscard]] Result<void> check_paths_apart(const DataConfig& data);

// Opens the arrays or images of data.path and, if it is set, of data.holdout_path, which replaces a
// held-out part that data.path has. kData if the samples of both have different types or shapes.
// `work` counts what is read; nullptr: not counted. REQUIRES: data.kind is "arrays" or "images",
// the latter with a model of one input.
[[nodiscard]] Result<ExampleFiles> open_examples(const DataConfig& data,
                                                 const SampleFormat& sample,
                                                 ProgressCounter* work);

}  // namespace motley
