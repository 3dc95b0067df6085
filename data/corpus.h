// Corpus: a long row of tokens, mapped from a file or held in memory. Formats:
// docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/result.h"
#include "base/work_counter.h"
#include "data/files/mapped_file.h"
#include "job/config.h"

namespace motley {

// Immutable and safe to share between threads.
class Corpus {
 public:
  enum class Width : std::size_t { kByte = 1, kUint16 = 2, kUint32 = 4 };  // bytes a token

  // The tokens are the bytes of the storage from `begin` to the end.
  // REQUIRES: their number is a multiple of the width; `begin` is within the storage.
  Corpus(std::variant<MappedFile, std::string> storage, std::size_t begin, Width width);

  [[nodiscard]] std::uint64_t size() const;  // in tokens

  // Copies the tokens from position `first` on. REQUIRES: first + tokens_T.size() <= size(), every
  // token is below 2^31.
  void copy(std::uint64_t first, std::span<std::int32_t> tokens_T) const;

  struct Token {
    std::uint64_t position = 0;
    std::uint32_t value = 0;
  };

  // The first token that is not below `vocab`, if any; reads the whole corpus. `work` counts what
  // was read; nullptr: nobody does.
  [[nodiscard]] std::optional<Token> first_outside(std::uint32_t vocab, WorkCounter* work) const;

  // All tokens as they are stored.
  [[nodiscard]] std::span<const std::byte> bytes() const;

 private:
  std::variant<MappedFile, std::string> storage_;
  std::size_t begin_;
  Width width_;
};

// A text file, mapped, or a folder's text files joined, in memory; one token a byte.
// REQUIRES: data.path is not empty. kData when there is nothing usable.
[[nodiscard]] Result<Corpus> open_text_corpus(const DataConfig& data);

// A .bin file of nanoGPT or llm.c, mapped. kData when it is damaged.
[[nodiscard]] Result<Corpus> open_token_corpus(const DataConfig& data);

}  // namespace motley
