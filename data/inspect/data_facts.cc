#include "data/inspect/data_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/data_remarks.h"
#include "data/files/array_folder.h"
#include "data/files/image_data.h"
#include "data/source.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

TokenFacts facts_of(const Corpus& corpus) {
  return {std::string(token_type_name(corpus.type())), corpus.parts(), corpus.size(),
          corpus.size() > 0 ? corpus.range() : Corpus::Range()};
}

// Without a model the vocabulary is unknown: the type is detected for a large one, or else for one
// of 16 bits.
Result<Corpus> open_tokens_of_any_vocabulary(const DataConfig& data) {
  constexpr std::uint32_t kLargeVocab = 1U << 18;
  constexpr std::uint32_t kShortVocab = 1U << 16;
  auto corpus = open_token_corpus(data, kLargeVocab);
  return corpus.ok() ? std::move(corpus) : open_token_corpus(data, kShortVocab);
}

// The NAME of each inputs.NAME.npy; one "" for inputs.npy.
std::vector<std::string> input_names_in(const fs::path& folder) {
  constexpr std::string_view kBefore = "inputs.";
  constexpr std::string_view kAfter = ".npy";
  std::vector<std::string> names;
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    const bool is_input = name.starts_with(kBefore) && name.ends_with(kAfter) &&
                          name.size() > kBefore.size() + kAfter.size();
    if (is_input) {
      names.push_back(name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size()));
    }
  }
  if (names.empty() || fs::exists(folder / "inputs.npy", code)) return {""};
  std::ranges::sort(names);
  return names;
}

TensorSpec tensor_of(const Column& column) {
  const bool is_image = column.type() == ElementType::kUint8 && column.shape().size() >= 2;
  const bool is_float = column.type() == ElementType::kFloat32 || is_image;
  return {is_float ? Dtype::kFloat32 : Dtype::kInt64,
          {column.shape().begin(), column.shape().end()}};
}

// A model that takes such samples, with the usual ignored target if that occurs.
SampleFormat format_of(const Examples& examples, const ColumnFacts& targets) {
  constexpr std::int64_t kUsualIgnored = -100;
  SampleFormat format;
  for (const Column& column : examples.inputs) format.inputs.push_back({"", tensor_of(column), {}});
  format.target = tensor_of(examples.targets);
  if (format.target.type == Dtype::kInt64) {
    format.target_limit = static_cast<std::int64_t>(std::max(0.0, targets.highest)) + 1;
    if (targets.lowest == kUsualIgnored) format.ignored_target = kUsualIgnored;
  }
  return format;
}

void add_columns(const Examples& examples,
                 const std::vector<std::string>& names,
                 const std::string& before,
                 ProgressCounter& work,
                 std::vector<ColumnFacts>& columns) {
  for (std::size_t k = 0; k < examples.inputs.size(); ++k) {
    const std::string name = k < names.size() && !names[k].empty() ? "." + names[k] : "";
    columns.push_back(facts_of(examples.inputs[k], before + "inputs" + name, &work));
  }
  columns.push_back(facts_of(examples.targets, before + "targets", &work));
}

void add_remarks_on_values(DataFacts& facts) {
  if (facts.tokens && facts.tokens->tokens > 0 &&
      facts.tokens->range.zeros >= facts.tokens->tokens - facts.tokens->range.zeros) {
    facts.remarks.push_back(fmt::format("{} of {} tokens are 0: is it padding, or another dtype?",
                                        facts.tokens->range.zeros, facts.tokens->tokens));
  }
  for (const ColumnFacts& column : facts.columns) {
    if (column.not_finite == 0) continue;
    facts.remarks.push_back(
        fmt::format("{} of {} values of the {} are NaN or infinity: training refuses them unless "
                    "data.allow_nonfinite is set",
                    column.not_finite, column.values, column.role));
  }
}

void add_examples(const ExampleFiles& files,
                  const std::vector<std::string>& names,
                  ProgressCounter& work,
                  DataFacts& facts) {
  add_columns(files.train, names, "", work, facts.columns);
  if (files.held_out) add_columns(*files.held_out, names, "held-out ", work, facts.columns);
}

// Pictures are scaled to the model's shape, so that any will do.
Result<ExampleFiles> open_examples_of_any_shape(const DataConfig& data,
                                                const std::vector<std::string>& names,
                                                ProgressCounter& work) {
  constexpr std::int64_t kAnyPicture[] = {3, 32, 32};
  if (data.kind == "arrays") return open_array_folder(data.path, names);
  return open_image_data(data.path, kAnyPicture, data.skip_damaged, &work);
}

TrainingFacts facts_of(const Source& source, const TrainConfig& train) {
  TrainingFacts facts;
  facts.train_samples = source.train_samples();
  facts.eval_samples = source.eval_samples();
  facts.epochs = train.epochs > 0 ? train.epochs
                                  : static_cast<double>(train.steps) * train.global_batch /
                                        static_cast<double>(facts.train_samples);
  facts.hash = source.identity().hash;
  return facts;
}

}  // namespace

Result<DataFacts> inspect_data(const DataConfig& data, ProgressCounter& work) {
  DataFacts facts;
  if (data.kind == "text" || data.kind == "tokens") {
    MOTLEY_ASSIGN(const Corpus corpus, data.kind == "text" ? open_text_corpus(data)
                                                           : open_tokens_of_any_vocabulary(data));
    facts.tokens = facts_of(corpus);
    facts.remarks = corpus_remarks(corpus, data);
    add_remarks_on_values(facts);
  } else if (data.kind == "arrays" || data.kind == "images") {
    const auto names = input_names_in(data.path);
    MOTLEY_ASSIGN(const ExampleFiles files, open_examples_of_any_shape(data, names, work));
    add_examples(files, names, work, facts);
    const ColumnFacts& targets = facts.columns[files.train.inputs.size()];
    facts.remarks = example_remarks(files, data, format_of(files.train, targets));
    add_remarks_on_values(facts);
  }
  facts.kind = data.kind;
  facts.path = data.path;
  return facts;
}

Result<CheckedData> inspect_data(const Config& config,
                                 const SampleFormat& format,
                                 ProgressCounter& work) {
  const DataConfig& data = config.data;
  CheckedData checked;
  DataFacts& facts = checked.facts;
  MOTLEY_ASSIGN(const auto source, open_source(data, format, config.train.seed, &work));
  facts.remarks = training_remarks(*source, config.train);
  checked.training = facts_of(*source, config.train);
  if (const Corpus* corpus = source->corpus()) facts.tokens = facts_of(*corpus);
  if (const ExampleFiles* examples = source->examples()) {
    std::vector<std::string> names;
    for (const SampleInput& input : format.inputs) names.push_back(input.name);
    add_examples(*examples, names, work, facts);
  }
  add_remarks_on_values(facts);
  facts.kind = data.kind;
  facts.path = data.path;
  return checked;
}

}  // namespace motley
