// Data sources: which numbers make up sample n of the training, as a pure function of (seed, n), so
// that the order is the same for every plan and after every resume. No LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "job/config.h"
#include "models/spec/sample_format.h"

namespace motley {

// Tells one set of data from another: docs/formats/data.md.
struct DataIdentity {
  std::uint64_t bytes = 0;  // of all samples as they are stored; 0 where none are
  std::string hash;         // of that number and of sampled blocks

  friend bool operator==(const DataIdentity&, const DataIdentity&) = default;
};

// Random access to the samples of one set of data. Immutable and safe to share between threads.
// Numbers are 32 bits wide: integers, or floats by their bits. A sample of text is `context + 1`
// consecutive tokens: the input is the first `context`, the target the last.
class Source {
 public:
  virtual ~Source() = default;

  // Training sample number `index` (0, 1, … without end): each epoch visits every one once, in
  // an order that depends on the seed and the epoch only.
  // REQUIRES: both spans are as long as the sample's format says.
  virtual void train_sample(std::uint64_t index,
                            std::span<std::int32_t> input,
                            std::span<std::int32_t> target) const = 0;

  // Held-out sample, a fixed order that does not depend on the seed. REQUIRES: eval_samples() > 0.
  virtual void eval_sample(std::uint64_t index,
                           std::span<std::int32_t> input,
                           std::span<std::int32_t> target) const = 0;

  [[nodiscard]] virtual std::uint64_t train_samples() const = 0;  // per epoch
  [[nodiscard]] virtual std::uint64_t eval_samples() const = 0;   // distinct; 0 = nothing held out
  [[nodiscard]] virtual DataIdentity identity() const = 0;

  // Gives pages of mapped files that were read back to the system, so that memory does not grow
  // with what was seen of the data.
  virtual void release_pages() const {}

  // Bytes of text per token on average (1 for bytes), for bits per byte; 0 when unknown.
  [[nodiscard]] virtual double bytes_per_token() const = 0;

  // What of the data is hardly meant, a line each (data/data_remarks.h); reads much of it.
  [[nodiscard]] virtual std::vector<std::string> remarks() const = 0;
};

// Opens and checks the data. kData, with what to do, when it is unreadable, has not one sample of
// each part that the config wants, does not fit the model, holds a token or an integer that the
// model has no room for, or, unless data.allow_nonfinite, a float that is no finite number (every
// one is checked), or has no target that the loss does not ignore. kConfig when data.path is
// missing or the model takes data of another kind. Formats and order: docs/formats/data.md. `work`
// counts what is read meanwhile; nullptr: not counted. REQUIRES: configurations whose keys were
// checked (job/config_io.h).
[[nodiscard]] Result<std::unique_ptr<const Source>> open_source(const DataConfig& data,
                                                                const SampleFormat& sample,
                                                                std::int64_t seed,
                                                                WorkCounter* work = nullptr);

}  // namespace motley
