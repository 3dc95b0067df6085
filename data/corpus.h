// Corpus: a long sequence of tokens, mapped from a file or held in memory. Formats:
// docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/mapped_file.h"
#include "data/files/token_type.h"
#include "data/source.h"
#include "run_config/config.h"

namespace motley {

// Immutable and safe to share between threads.
class Corpus {
 public:
  // The tokens are the bytes of the storage from `begin` to the end. `has_usual_type`: the file
  // declares their type, or it is the usual one of such a file. REQUIRES: the size is a multiple of
  // a token's; `begin` is within the storage.
  Corpus(std::variant<MappedFile, std::string> storage,
         std::size_t begin,
         TokenType type,
         bool has_usual_type = true);

  [[nodiscard]] TokenType type() const { return type_; }

  [[nodiscard]] std::uint64_t size() const;  // in tokens

  // Copies the tokens from position `first` on. REQUIRES: first + tokens_T.size() <= size(), every
  // token is from 0 to below 2^31.
  void copy(std::uint64_t first, std::span<std::int32_t> tokens_T) const;

  struct Token {
    std::uint64_t position = 0;
    std::int64_t value = 0;
  };

  // The first token that is not from 0 to below `vocab`, if any; reads the whole corpus. `work`
  // counts what was read; nullptr: not counted.
  [[nodiscard]] std::optional<Token> first_outside(std::uint32_t vocab,
                                                   ProgressCounter* work) const;

  // Whether all tokens would be below `vocab` with their bytes swapped. REQUIRES: a 16-bit type.
  [[nodiscard]] bool are_within_swapped(std::uint32_t vocab) const;

  // As MappedFile::release_pages; does nothing for a corpus in memory.
  void release_pages() const;

  // All tokens as stored.
  [[nodiscard]] std::span<const std::byte> bytes() const;

  // The corpus's fingerprint. It includes the token type unless the file determines that.
  [[nodiscard]] DataIdentity identity() const;

 private:
  std::variant<MappedFile, std::string> storage_;
  std::size_t begin_;
  TokenType type_;
  bool has_usual_type_;
};

// A mapped text file, or a folder's text files joined in memory; one token per byte. REQUIRES:
// data.path is not empty. kData if there is no usable text.
[[nodiscard]] Result<Corpus> open_text_corpus(const DataConfig& data);

// The maximum memory that open_text_corpus uses for a folder; 0 if data.path is not a folder.
[[nodiscard]] std::uint64_t text_folder_bytes(const DataConfig& data);

// A mapped .bin file of nanoGPT or llm.c, or a .npy file. Without a header the type of its tokens
// is data.dtype, or detected from the bytes for tokens below `vocab`. kData if the file is damaged,
// is of another kind, or its type cannot be detected.
[[nodiscard]] Result<Corpus> open_token_corpus(const DataConfig& data, std::uint32_t vocab);

}  // namespace motley
