// The properties of a file of tokens, and the headers of valid ones.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "data/corpus.h"
#include "tests/fuzz/laws.h"

namespace motley {

// llm.c's header before the tokens.
inline std::string token_file(std::int32_t magic,
                              std::int32_t version,
                              std::int32_t count,
                              const std::string& tokens) {
  std::string bytes(256 * sizeof(std::int32_t), '\0');
  const std::int32_t head[] = {magic, version, count};
  std::memcpy(bytes.data(), head, sizeof head);
  return bytes + tokens;
}

inline std::string right_short_tokens() {
  return token_file(20240520, 1, 3, std::string("\1\0\2\0\3\0", 6));
}

inline std::string right_long_tokens() {
  return token_file(20240801, 7, 2, std::string("\1\0\0\0\2\0\1\0", 8));
}

// A temporary file that exists as long as this object.
class TokenFileOf {
 public:
  explicit TokenFileOf(std::string_view bytes) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "motley-tokens-XXXXXX").string();
    const int fd = ::mkstemp(pattern.data());
    MOTLEY_CHECK(fd >= 0 && ::close(fd) == 0, "no temporary file {}", pattern);
    path_ = pattern;
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  TokenFileOf(const TokenFileOf&) = delete;
  TokenFileOf& operator=(const TokenFileOf&) = delete;

  ~TokenFileOf() { std::filesystem::remove(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The tokens of the file, or the error. Tokens of 2^31 and more are invalid.
inline Result<std::vector<std::int32_t>> tokens_in(const std::string& path) {
  DataConfig data;
  data.kind = "tokens";
  data.path = path;
  MOTLEY_ASSIGN(const Corpus corpus, open_token_corpus(data, std::uint32_t{1} << 31));
  if (corpus.first_outside(std::uint32_t{1} << 31, nullptr)) return std::vector<std::int32_t>();
  std::vector<std::int32_t> tokens(corpus.size());
  corpus.copy(0, tokens);
  return tokens;
}

// Tokens that were read are equal after writing them with llm.c's header and reading them again.
inline std::string wrong_with_tokens(std::string_view bytes) {
  const TokenFileOf file(bytes);
  const auto tokens = tokens_in(file.path());
  if (!tokens.ok()) return wrong_error(tokens.error(), {ErrorCode::kData}, file.path());
  if (tokens->size() > bytes.size()) return "more tokens than bytes";
  std::string written(tokens->size() * sizeof(std::int32_t), '\0');
  if (!tokens->empty()) std::memcpy(written.data(), tokens->data(), written.size());
  const TokenFileOf copy(
      token_file(20240801, 7, static_cast<std::int32_t>(tokens->size()), written));
  const auto again = tokens_in(copy.path());
  if (!again.ok()) return "written and refused: " + describe(again.error());
  return *again == *tokens ? "" : "written and read, and not the same";
}

}  // namespace motley
