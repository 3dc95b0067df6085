// The source of windows of tokens: text and token files, with held-out tokens at the end of the
// training data or of their own.
#pragma once

#include <cstdint>
#include <memory>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/source.h"

namespace motley {

// Opens data.path and, if it is set, data.holdout_path. kData if there is too little of either, a
// token is outside the vocabulary, or their dtypes differ. `work` counts what is read; nullptr: not
// counted. REQUIRES: data.kind is "text" or "tokens"; data.path is not empty.
[[nodiscard]] Result<std::unique_ptr<const Source>> make_corpus_source(const DataConfig& data,
                                                                       int vocab,
                                                                       std::uint64_t context,
                                                                       std::int64_t seed,
                                                                       ProgressCounter* work);

}  // namespace motley
