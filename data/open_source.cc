#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "data/array_source.h"
#include "data/corpus_source.h"
#include "data/held_out_path.h"
#include "data/source.h"
#include "data/synthetic_samples.h"
#include "data/synthetic_source.h"

namespace motley {
namespace {

// These kinds of data are sequences of tokens, each the target of the preceding one.
Result<void> check_tokens_fit(const DataConfig& data, const SampleFormat& sample) {
  if (sample.is_next_token) return {};
  return with_key(
      {ErrorCode::kConfig, fmt::format("data.kind = \"{}\" does not fit the model", data.kind),
       "it provides tokens and next tokens; the model has other inputs or targets",
       "set data.kind to \"arrays\" or \"images\", or to \"synthetic\" for a test without data"},
      "data.kind");
}

Result<void> check_images_fit(const SampleFormat& sample) {
  if (sample.inputs.size() == 1) return {};
  return with_key({ErrorCode::kConfig, "data.kind = \"images\" does not fit the model",
                   fmt::format("it provides one input; the model takes {}", sample.inputs.size()),
                   "set data.kind to \"arrays\", or to \"synthetic\" for a test without data"},
                  "data.kind");
}

}  // namespace

Result<std::unique_ptr<const Source>> open_source(const DataConfig& data,
                                                  const SampleFormat& sample,
                                                  std::int64_t seed,
                                                  ProgressCounter* work) {
  const bool is_made_up = data.kind == "synthetic";
  if (data.path.empty() && !is_made_up) {
    return with_key({ErrorCode::kConfig, "data.path is not set",
                     fmt::format("data.kind = \"{}\" reads a file", data.kind),
                     "set data.path, or data.kind = \"synthetic\""},
                    "data.path");
  }
  if (has_held_out_path(data)) MOTLEY_TRY(check_paths_apart(data));
  if (data.kind == "arrays") {
    MOTLEY_ASSIGN(auto files, open_examples(data, sample, work));
    return make_array_source(std::move(files), data, sample, seed, work);
  }
  if (data.kind == "images") {
    MOTLEY_TRY(check_images_fit(sample));
    MOTLEY_ASSIGN(auto files, open_examples(data, sample, work));
    return make_array_source(std::move(files), data, sample, seed, work);
  }
  if (is_made_up && !sample.is_next_token) {
    return make_synthetic_samples(data.holdout, sample, seed);
  }
  MOTLEY_TRY(check_tokens_fit(data, sample));
  const SampleInput& tokens = sample.inputs.front();
  const auto vocab = static_cast<int>(tokens.limit.value());
  if (is_made_up) return make_synthetic_source(data.holdout, vocab, seed);
  return make_corpus_source(data, vocab, static_cast<std::uint64_t>(tokens.tensor.count()), seed,
                            work);
}

}  // namespace motley
