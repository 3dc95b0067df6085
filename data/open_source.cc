#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "base/check.h"
#include "data/array_source.h"
#include "data/corpus.h"
#include "data/data_remarks.h"
#include "data/files/array_folder.h"
#include "data/files/image_data.h"
#include "data/source.h"
#include "data/synthetic_samples.h"
#include "data/synthetic_source.h"
#include "data/windows.h"

namespace motley {
namespace {

constexpr int kByteValues = 256;

class CorpusSource final : public Source {
 public:
  CorpusSource(Corpus corpus,
               const WindowLayout& layout,
               std::uint64_t seed,
               const DataConfig& data)
      : corpus_(std::move(corpus)),
        layout_(layout),
        order_(seed, layout.train_windows),
        data_(data) {}

  void train_sample(std::uint64_t index,
                    std::span<std::int32_t> inputs_T,
                    std::span<std::int32_t> targets_T) const override {
    const auto [epoch, window] = order_.place(index);
    const std::uint64_t shift = order_.shift(epoch, layout_.shifts());
    copy_window(shift + window * layout_.context, inputs_T, targets_T);
  }

  void eval_sample(std::uint64_t index,
                   std::span<std::int32_t> inputs_T,
                   std::span<std::int32_t> targets_T) const override {
    MOTLEY_CHECK(layout_.eval_windows > 0, "nothing is held out");
    const std::uint64_t window = index % layout_.eval_windows;
    copy_window(layout_.train_tokens + window * layout_.context, inputs_T, targets_T);
  }

  [[nodiscard]] std::uint64_t train_samples() const override { return layout_.train_windows; }

  [[nodiscard]] std::uint64_t eval_samples() const override { return layout_.eval_windows; }

  [[nodiscard]] DataIdentity identity() const override { return corpus_.identity(); }

  [[nodiscard]] double bytes_per_token() const override { return data_.kind == "text" ? 1 : 0; }

  [[nodiscard]] std::vector<std::string> remarks() const override {
    return corpus_remarks(corpus_, data_);
  }

  void release_pages() const override { corpus_.release_pages(); }

 private:
  void copy_window(std::uint64_t first,
                   std::span<std::int32_t> inputs_T,
                   std::span<std::int32_t> targets_T) const {
    MOTLEY_CHECK(inputs_T.size() == layout_.context && targets_T.size() == layout_.context,
                 "{} inputs and {} targets for a context of {}", inputs_T.size(), targets_T.size(),
                 layout_.context);
    corpus_.copy(first, inputs_T);
    corpus_.copy(first + 1, targets_T);
  }

  Corpus corpus_;
  WindowLayout layout_;
  WindowOrder order_;
  DataConfig data_;
};

Error token_outside(const Corpus::Token& token,
                    const Corpus& corpus,
                    const DataConfig& data,
                    int vocab) {
  Error error{
      ErrorCode::kData,
      fmt::format("token {} at position {} is outside the vocabulary of {}, {}", token.value,
                  token.position, vocab, token.file.empty() ? data.path : token.file),
      fmt::format("its tokens are read as {}", token_type_name(corpus.type())),
      fmt::format("set model.vocab to at least {}, or use data from another tokenizer",
                  token.value + 1)};
  const bool is_negative_int32 =
      corpus.type() == TokenType::kUint32 && token.value > std::numeric_limits<std::int32_t>::max();
  if (is_negative_int32) {
    error.cause += fmt::format("; as int32 it is {}", static_cast<std::int32_t>(token.value));
  }
  if (token.value < 0 || is_negative_int32) {
    error.remedy =
        "remove negative tokens: a token file has no ignored positions; labels such as -100 belong "
        "in the targets of data.kind = \"arrays\"";
  }
  if (corpus.type() != TokenType::kUint16) return error;
  const bool are_swapped = corpus.are_within_swapped(static_cast<std::uint32_t>(vocab));
  if (are_swapped) {
    error.cause += "; read as big-endian numbers, all are within it";
    error.remedy = "write the file again as little-endian: a.astype('<u2').tofile(name)";
  } else if (data.dtype == "auto") {
    error.remedy += "; set data.dtype to the dtype of its tokens";
  }
  return error;
}

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

std::vector<std::string> names_of(const std::vector<SampleInput>& inputs) {
  std::vector<std::string> names;
  for (const SampleInput& input : inputs) names.push_back(input.name);
  return names;
}

Result<Corpus> open_corpus(const DataConfig& data, int vocab, ProgressCounter* work) {
  if (data.kind == "text") {
    if (vocab < kByteValues) {
      return Error{
          ErrorCode::kData,
          fmt::format("vocabulary of {} is smaller than the {} byte values", vocab, kByteValues),
          "", fmt::format("set model.vocab = {}", kByteValues)};
    }
    return open_text_corpus(data);
  }
  MOTLEY_CHECK(data.kind == "tokens", "data.kind is '{}'", data.kind);
  MOTLEY_ASSIGN(auto corpus, open_token_corpus(data, static_cast<std::uint32_t>(vocab)));
  if (const auto token = corpus.first_outside(static_cast<std::uint32_t>(vocab), work)) {
    return token_outside(*token, corpus, data, vocab);
  }
  if (auto line = meta_remark(data, static_cast<std::uint32_t>(vocab))) {
    corpus.add_remark(*std::move(line));
  }
  return corpus;
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
  if (data.kind == "arrays") {
    MOTLEY_ASSIGN(auto files, open_array_folder(data.path, names_of(sample.inputs)));
    return make_array_source(std::move(files), data, sample, seed, work);
  }
  if (data.kind == "images") {
    MOTLEY_TRY(check_images_fit(sample));
    const TensorSpec& image = sample.inputs.front().tensor;
    MOTLEY_ASSIGN(auto files, open_image_data(data.path, image.shape, data.skip_damaged, work));
    return make_array_source(std::move(files), data, sample, seed, work);
  }
  if (is_made_up && !sample.is_next_token) {
    return make_synthetic_samples(data.holdout, sample, seed);
  }
  MOTLEY_TRY(check_tokens_fit(data, sample));
  const SampleInput& tokens = sample.inputs.front();
  const auto vocab = static_cast<int>(tokens.limit.value());
  if (is_made_up) return make_synthetic_source(data.holdout, vocab, seed);
  MOTLEY_ASSIGN(auto corpus, open_corpus(data, vocab, work));
  auto layout = lay_out_windows(corpus.size(), data.holdout,
                                static_cast<std::uint64_t>(tokens.tensor.count()));
  if (!layout.ok()) return with_context(layout.error(), data.path);
  return std::unique_ptr<const Source>(std::make_unique<CorpusSource>(
      std::move(corpus), *layout, static_cast<std::uint64_t>(seed), data));
}

}  // namespace motley
