#include "data/corpus_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "data/corpus.h"
#include "data/data_remarks.h"
#include "data/held_out_path.h"
#include "data/identity.h"
#include "data/order/windows.h"

namespace motley {
namespace {

constexpr int kByteValues = 256;

struct Corpora {
  Corpus train;
  std::optional<Corpus> held_out;  // of data.holdout_path
};

class CorpusSource final : public Source {
 public:
  CorpusSource(Corpora corpora,
               const WindowLayout& layout,
               std::uint64_t seed,
               const DataConfig& data)
      : corpora_(std::move(corpora)),
        layout_(layout),
        order_(seed, layout.train_windows),
        data_(data) {}

  void train_sample(std::uint64_t index,
                    std::span<std::int32_t> inputs_T,
                    std::span<std::int32_t> targets_T) const override {
    const auto [epoch, window] = order_.place(index);
    const std::uint64_t shift = order_.shift(epoch, layout_.shifts());
    copy_window(corpora_.train, shift + window * layout_.context, inputs_T, targets_T);
  }

  void eval_sample(std::uint64_t index,
                   std::span<std::int32_t> inputs_T,
                   std::span<std::int32_t> targets_T) const override {
    MOTLEY_CHECK(layout_.eval_windows > 0, "nothing is held out");
    const std::uint64_t first = index % layout_.eval_windows * layout_.context;
    if (corpora_.held_out) {
      copy_window(*corpora_.held_out, first, inputs_T, targets_T);
    } else {
      copy_window(corpora_.train, layout_.train_tokens + first, inputs_T, targets_T);
    }
  }

  [[nodiscard]] std::uint64_t train_samples() const override { return layout_.train_windows; }

  [[nodiscard]] std::uint64_t eval_samples() const override { return layout_.eval_windows; }

  [[nodiscard]] DataIdentity identity() const override {
    const DataIdentity train = corpora_.train.identity();
    return corpora_.held_out ? identify_both(train, corpora_.held_out->identity()) : train;
  }

  [[nodiscard]] const Corpus* corpus() const override { return &corpora_.train; }

  [[nodiscard]] double bytes_per_token() const override { return data_.kind == "text" ? 1 : 0; }

  [[nodiscard]] std::vector<std::string> remarks() const override {
    std::vector<std::string> lines = corpus_remarks(corpora_.train, data_);
    if (!corpora_.held_out) return lines;
    std::ranges::move(corpus_remarks(*corpora_.held_out, held_out_data(data_)),
                      std::back_inserter(lines));
    if (auto line = held_out_text_that_is_trained(corpora_.train, *corpora_.held_out, data_)) {
      lines.push_back(*std::move(line));
    }
    return lines;
  }

  void release_pages() const override {
    corpora_.train.release_pages();
    if (corpora_.held_out) corpora_.held_out->release_pages();
  }

 private:
  void copy_window(const Corpus& corpus,
                   std::uint64_t first,
                   std::span<std::int32_t> inputs_T,
                   std::span<std::int32_t> targets_T) const {
    MOTLEY_CHECK(inputs_T.size() == layout_.context && targets_T.size() == layout_.context,
                 "{} inputs and {} targets for a context of {}", inputs_T.size(), targets_T.size(),
                 layout_.context);
    corpus.copy(first, inputs_T);
    corpus.copy(first + 1, targets_T);
  }

  Corpora corpora_;
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

// A short file may not show the dtype of its tokens, and would be read as another one.
Result<void> check_same_type(const Corpora& corpora, const DataConfig& data) {
  const TokenType train = corpora.train.type();
  const TokenType held_out = corpora.held_out->type();
  if (train == held_out) return {};
  return Error{
      ErrorCode::kData,
      fmt::format("the tokens of {} and {} have different dtypes", data.path, data.holdout_path),
      fmt::format("they are read as {} and {}", token_type_name(train), token_type_name(held_out)),
      "set data.dtype to the dtype of both, or write both files in the same dtype"};
}

Result<Corpora> open_corpora(const DataConfig& data, int vocab, ProgressCounter* work) {
  MOTLEY_ASSIGN(Corpus train, open_corpus(data, vocab, work));
  Corpora corpora{std::move(train), std::nullopt};
  if (!has_held_out_path(data)) return corpora;
  auto held_out = open_corpus(held_out_data(data), vocab, work);
  if (!held_out.ok()) return of_held_out_path(held_out.error());
  corpora.held_out.emplace(std::move(held_out).value());
  const Result<void> same = check_same_type(corpora, data);
  if (!same.ok()) return of_held_out_path(same.error());
  return corpora;
}

Result<WindowLayout> layout_of(const Corpora& corpora,
                               const DataConfig& data,
                               std::uint64_t context) {
  const std::uint64_t tokens = corpora.train.size();
  auto layout = corpora.held_out ? lay_out_windows_apart(tokens, corpora.held_out->size(), context)
                                 : lay_out_windows(tokens, data.holdout, context);
  if (!layout.ok()) return with_context(layout.error(), data.path);
  if (corpora.held_out && layout->eval_windows == 0) {
    return of_held_out_path(
        {ErrorCode::kData, fmt::format("the held-out data is too short, {}", data.holdout_path),
         fmt::format("it has {} tokens; with model.context = {} it needs at least {}",
                     corpora.held_out->size(), context, context + 1),
         "use more data or a smaller model.context"});
  }
  return layout;
}

}  // namespace

Result<std::unique_ptr<const Source>> make_corpus_source(const DataConfig& data,
                                                         int vocab,
                                                         std::uint64_t context,
                                                         std::int64_t seed,
                                                         ProgressCounter* work) {
  MOTLEY_ASSIGN(Corpora corpora, open_corpora(data, vocab, work));
  MOTLEY_ASSIGN(const WindowLayout layout, layout_of(corpora, data, context));
  return std::unique_ptr<const Source>(std::make_unique<CorpusSource>(
      std::move(corpora), layout, static_cast<std::uint64_t>(seed), data));
}

}  // namespace motley
