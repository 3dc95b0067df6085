// Corpus: a long sequence of tokens, mapped from files or held in memory. Formats:
// docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/mapped_file.h"
#include "data/source.h"
#include "data/tokens/token_type.h"
#include "run_config/config.h"

namespace motley {

// Immutable and safe to share between threads.
class Corpus {
 public:
  // The tokens are the bytes of the storage from `begin` to the end. REQUIRES: their size is a
  // multiple of a token's; `begin` is within the storage.
  struct Part {
    std::variant<MappedFile, std::string> storage;
    std::size_t begin = 0;
    std::string file;  // name for errors
  };

  // The parts one after another. `has_usual_type`: the files declare their type, or it is the usual
  // one of such files. REQUIRES: at least one part.
  Corpus(std::vector<Part> parts, TokenType type, bool has_usual_type = true);

  // A single part without a name.
  Corpus(std::variant<MappedFile, std::string> storage, std::size_t begin, TokenType type);

  [[nodiscard]] TokenType type() const { return type_; }

  [[nodiscard]] std::uint64_t size() const;  // in tokens

  // Copies the tokens from position `first` on. REQUIRES: first + tokens_T.size() <= size(), every
  // token is from 0 to below 2^31.
  void copy(std::uint64_t first, std::span<std::int32_t> tokens_T) const;

  struct Token {
    std::uint64_t position = 0;  // in its file
    std::int64_t value = 0;
    std::string file;  // "" if the corpus is one part without a name
  };

  // The first token that is not from 0 to below `vocab`, if any; reads the whole corpus. `work`
  // counts what was read; nullptr: not counted.
  [[nodiscard]] std::optional<Token> first_outside(std::uint32_t vocab,
                                                   ProgressCounter* work) const;

  struct Range {
    std::int64_t lowest = 0;
    std::int64_t highest = 0;
    std::uint64_t zeros = 0;  // tokens that are 0
  };

  // Reads the whole corpus. REQUIRES: size() > 0.
  [[nodiscard]] Range range() const;

  // Whether all tokens would be below `vocab` with their bytes swapped. REQUIRES: a 16-bit type.
  [[nodiscard]] bool are_within_swapped(std::uint32_t vocab) const;

  // As MappedFile::release_pages; does nothing for a corpus in memory.
  void release_pages() const;

  [[nodiscard]] std::size_t parts() const { return parts_.size(); }

  // The tokens of a part as stored. REQUIRES: part < parts().
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t part = 0) const;

  // Lines about how the files were read, for Source::remarks().
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

  void add_remark(std::string line) { remarks_.push_back(std::move(line)); }

  // The corpus's fingerprint. It includes the token type unless the file determines that.
  [[nodiscard]] DataIdentity identity() const;

 private:
  std::vector<Part> parts_;
  std::vector<std::uint64_t> firsts_;  // [part]: its first token; at the end, their number
  TokenType type_;
  bool has_usual_type_;
  std::vector<std::string> remarks_;
};

// A mapped text file, or a folder's text files joined in memory; one token per byte. UTF-16 and
// UTF-32 become UTF-8, in memory. REQUIRES: data.path is not empty. kData if there is no usable
// text.
[[nodiscard]] Result<Corpus> open_text_corpus(const DataConfig& data);

// The memory that open_text_corpus uses for the text of a folder or a converted file; 0 if the file
// is mapped.
[[nodiscard]] std::uint64_t text_memory_bytes(const DataConfig& data);

// Mapped token files: .bin files of nanoGPT, llm.c or Megatron, or .npy files; one, or several of
// one type as find_token_files() orders them. Without a header or an index the type of their tokens
// is data.dtype, or detected from the bytes for tokens below `vocab`. kData if a file is damaged,
// is of another kind, or its type cannot be detected.
[[nodiscard]] Result<Corpus> open_token_corpus(const DataConfig& data, std::uint32_t vocab);

// A line if nanoGPT's meta.pkl beside these files has another vocabulary than the model's `vocab`,
// or may have one.
[[nodiscard]] std::optional<std::string> meta_remark(const DataConfig& data, std::uint32_t vocab);

}  // namespace motley
