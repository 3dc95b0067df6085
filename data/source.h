// Data sources: the values of training sample n as a pure function of (seed, n), so that the order
// is the same for every plan and after every resume. No LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

class Corpus;
struct ExampleFiles;

// A data set's fingerprint: docs/formats/data.md.
struct DataIdentity {
  std::uint64_t bytes = 0;  // of all samples as stored; 0 if none are
  std::string hash;         // of that size and of sampled blocks

  friend bool operator==(const DataIdentity&, const DataIdentity&) = default;
};

// Random access to the samples of one data set. Immutable and safe to share between threads. Values
// are 32 bits wide: integers, or floats as their bits. A sample of text is `context + 1`
// consecutive tokens: the input is the first `context`, the target the last.
class Source {
 public:
  virtual ~Source() = default;

  // Training sample number `index` (0, 1, … without end). Each epoch visits every sample once, in
  // an order that depends only on seed and epoch. REQUIRES: both spans have the lengths of the
  // sample's format.
  virtual void train_sample(std::uint64_t index,
                            std::span<std::int32_t> input,
                            std::span<std::int32_t> target) const = 0;

  // A held-out sample; their order does not depend on the seed. REQUIRES: eval_samples() > 0.
  virtual void eval_sample(std::uint64_t index,
                           std::span<std::int32_t> input,
                           std::span<std::int32_t> target) const = 0;

  [[nodiscard]] virtual std::uint64_t train_samples() const = 0;  // per epoch
  [[nodiscard]] virtual std::uint64_t eval_samples() const = 0;   // distinct; 0 = nothing held out
  [[nodiscard]] virtual DataIdentity identity() const = 0;

  // The names of the targets 0, 1, …; empty if the data has none.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }

  // Returns pages of mapped files that were read to the system, so that memory does not grow with
  // the data read.
  virtual void release_pages() const {}

  // Average bytes of text per token (1 for bytes), for bits per byte; 0 if unknown.
  [[nodiscard]] virtual double bytes_per_token() const = 0;

  // Warnings about probably unintended data, one line each (data/data_remarks.h); reads much of it.
  [[nodiscard]] virtual std::vector<std::string> remarks() const = 0;

  // What it reads, of data.path: tokens, or samples one by one. nullptr: other data, or none.
  [[nodiscard]] virtual const Corpus* corpus() const { return nullptr; }

  [[nodiscard]] virtual const ExampleFiles* examples() const { return nullptr; }
};

// Opens and checks the data. kData, with a hint, if it is unreadable, lacks a sample of a part that
// the config requires, does not fit the model, has a token or an integer outside the model's range,
// or, unless data.allow_nonfinite, a float that is not finite (every one is checked), or has only
// targets that the loss ignores. The same for data.holdout_path, whose samples must have the
// dtypes, shapes and classes of the training samples. kConfig if data.path is missing, both paths
// share samples, or the model takes data of another kind. Formats and order: docs/formats/data.md.
// `work` counts what is read; nullptr: not counted. REQUIRES: a configuration with checked keys
// (run_config/config_io.h).
[[nodiscard]] Result<std::unique_ptr<const Source>> open_source(const DataConfig& data,
                                                                const SampleFormat& sample,
                                                                std::int64_t seed,
                                                                ProgressCounter* work = nullptr);

// The source's remarks, and a line if it has fewer samples than a global batch, which therefore has
// some of them repeatedly.
[[nodiscard]] std::vector<std::string> training_remarks(const Source& source,
                                                        const TrainConfig& train);

}  // namespace motley
