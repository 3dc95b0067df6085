// DataFacts: what training data is, for `motley data check`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/corpus.h"
#include "data/inspect/column_facts.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

// The tokens of text or token files.
struct TokenFacts {
  std::string dtype;
  std::uint64_t files = 0;
  std::uint64_t tokens = 0;
  Corpus::Range range;
};

struct DataFacts {
  std::string kind;  // as data.kind
  std::string path;
  std::optional<TokenFacts> tokens;  // text and tokens
  std::vector<ColumnFacts> columns;  // arrays and images
  std::vector<std::string> remarks;  // as Source::remarks(), and of what needs a decision
};

// Reads all of the data without a model. data.kind is that of recognise_data(). kData as
// open_source(), where that depends on the data alone; NaN and infinity become a remark. `work`
// counts what is read.
[[nodiscard]] Result<DataFacts> inspect_data(const DataConfig& data, ProgressCounter& work);

// How a model's training uses the data.
struct TrainingFacts {
  std::uint64_t train_samples = 0;
  std::uint64_t eval_samples = 0;
  double epochs = 0;  // of the configured steps
  std::string hash;   // the data's fingerprint
};

struct CheckedData {
  DataFacts facts;
  TrainingFacts training;
};

// The same for a configuration and its model, after all checks of open_source(), with its errors.
[[nodiscard]] Result<CheckedData> inspect_data(const Config& config,
                                               const SampleFormat& format,
                                               ProgressCounter& work);

}  // namespace motley
