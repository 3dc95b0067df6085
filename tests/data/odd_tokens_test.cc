// Token files as people have them: of any type and byte order, cut, or not of tokens at all. Each
// is refused, or read as the tokens that were written; 200 of raw files and 200 of NumPy's.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/array_fixture.h"
#include "tests/data/file_draw.h"
#include "tests/fuzz/laws.h"
#include "tests/fuzz/token_laws.h"

namespace motley {
namespace {

constexpr int kFiles = 200;

// A few frequent tokens and many rare ones, all below `vocab`.
std::vector<std::int64_t> usual_tokens(FileDraw& draw, std::uint32_t vocab, std::size_t count) {
  std::vector<std::int64_t> tokens(count);
  for (std::int64_t& token : tokens) {
    const double share = draw.share();
    token = static_cast<std::int64_t>(share * share * share * vocab);
  }
  return tokens;
}

template <class T>
std::string little(const std::vector<std::int64_t>& tokens) {
  std::vector<T> stored(tokens.begin(), tokens.end());
  return bytes_of(stored);
}

template <class T>
std::string big(const std::vector<std::int64_t>& tokens) {
  std::string bytes = little<T>(tokens);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof(T)));
  }
  return bytes;
}

struct Way {
  const char* name;
  std::size_t bytes;  // of a token
  bool is_readable;
  std::string (*write)(const std::vector<std::int64_t>& tokens);
  const char* numpy;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {{"uint16", 2, true, little<std::uint16_t>, "<u2"},
                                       {"uint32", 4, true, little<std::uint32_t>, "<u4"},
                                       {"int32", 4, true, little<std::int32_t>, "<i4"},
                                       {"int64", 8, true, little<std::int64_t>, "<i8"},
                                       {"big uint16", 2, false, big<std::uint16_t>, ">u2"},
                                       {"big uint32", 4, false, big<std::uint32_t>, ">u4"},
                                       {"big int64", 8, false, big<std::int64_t>, ">i8"},
                                       {"float32", 4, false, little<float>, "<f4"},
                                       {"float64", 8, false, little<double>, "<f8"}};
  return all;
}

// The tokens of the file; nullopt with an error that is as it should be.
std::optional<std::vector<std::int64_t>> read_tokens(const std::string& path, std::uint32_t vocab) {
  DataConfig data;
  data.kind = "tokens";
  data.path = path;
  const auto corpus = open_token_corpus(data, vocab);
  if (!corpus.ok()) {
    EXPECT_EQ(wrong_error(corpus.error(), {ErrorCode::kData}, path), "");
    return std::nullopt;
  }
  if (corpus->first_outside(vocab, nullptr)) return std::nullopt;
  std::vector<std::int32_t> tokens(corpus->size());
  corpus->copy(0, tokens);
  return std::vector<std::int64_t>(tokens.begin(), tokens.end());
}

// Whether what was read is the beginning of what was written.
bool is_beginning(const std::vector<std::int64_t>& read, const std::vector<std::int64_t>& written) {
  return read.size() <= written.size() && std::equal(read.begin(), read.end(), written.begin());
}

TEST(OddTokenFiles, AreReadRightOrRefused) {
  FileDraw draw;
  int accepted = 0;
  for (int i = 0; i < kFiles; ++i) {
    constexpr std::uint32_t kVocabs[] = {300, 4096, 32000, 50257, 65536, 128256};
    const std::uint32_t vocab = kVocabs[draw.below(6)];
    const Way& way = ways()[draw.below(static_cast<std::uint32_t>(ways().size()))];
    // Of 65,536 tokens either byte order is possible (docs/formats/data.md).
    if (way.bytes == 2 && vocab > (way.is_readable ? 65536U : 50257U)) continue;
    const auto tokens = usual_tokens(draw, vocab, 8192 + draw.below(8192));
    std::string bytes = way.write(tokens);
    const std::uint32_t cut = draw.below(3) == 0 ? 1 + draw.below(9) : 0;
    bytes.resize(bytes.size() - cut);
    const TokenFileOf file(bytes);
    const auto read = read_tokens(file.path(), vocab);
    const bool is_whole = cut % way.bytes == 0;
    const std::string what = std::string(way.name) + ", vocabulary of " + std::to_string(vocab) +
                             ", cut by " + std::to_string(cut);
    if (read) {
      EXPECT_TRUE(way.is_readable && is_whole && is_beginning(*read, tokens)) << what;
    }
    if (way.is_readable && is_whole) {
      EXPECT_TRUE(read.has_value()) << what;
    }
    accepted += read ? 1 : 0;
  }
  EXPECT_GT(accepted, kFiles / 8);
  EXPECT_LT(accepted, kFiles - kFiles / 8);
}

TEST(OddTokenFiles, WithAHeaderThatContradictsThemAreRefused) {
  FileDraw draw;
  for (int i = 0; i < kFiles; ++i) {
    const auto tokens = usual_tokens(draw, 50257, 100 + draw.below(4000));
    const bool is_long = draw.below(2) == 1;
    const std::int32_t count = static_cast<std::int32_t>(tokens.size());
    const std::uint32_t kind = draw.below(5);
    // The count, the version, the magic number of another file, or the tokens' width are wrong.
    const std::int32_t said =
        kind == 0 ? count + 1 + static_cast<std::int32_t>(draw.below(99)) : count;
    const std::int32_t version = (is_long ? 7 : 1) + (kind == 1 ? 1 : 0);
    const std::int32_t magic = kind == 2 ? 20240522 : is_long ? 20240801 : 20240520;
    const bool is_stored_long = is_long != (kind == 3);
    const std::string stored =
        is_stored_long ? little<std::uint32_t>(tokens) : little<std::uint16_t>(tokens);
    const TokenFileOf file(token_file(magic, version, said, stored));
    const auto read = read_tokens(file.path(), 50257);
    EXPECT_EQ(read.has_value(), kind == 4) << kind;
    if (read) {
      EXPECT_EQ(*read, tokens);
    }
  }
}

TEST(OddTokenFiles, OfNumPyAreReadRightOrRefused) {
  FileDraw draw;
  int accepted = 0;
  for (int i = 0; i < kFiles; ++i) {
    const Way& way = ways()[draw.below(static_cast<std::uint32_t>(ways().size()))];
    const auto tokens = usual_tokens(draw, 50257, 1 + draw.below(3000));
    const auto count = static_cast<std::int64_t>(tokens.size());
    const std::uint32_t kind = draw.below(6);
    std::vector<std::int64_t> shape = {count};
    if (kind == 0) shape = {count + 1};
    if (kind == 1) shape = {2, count};
    if (kind == 2) shape = {1, count, 1};
    std::string bytes = npy_of(npy_header(way.numpy, shape), way.write(tokens));
    if (kind == 3) bytes.resize(bytes.size() - 1 - draw.below(40));
    if (kind == 4) bytes[draw.below(64)] ^= static_cast<char>(1U << draw.below(7));
    const TokenFileOf file(bytes);
    const auto read = read_tokens(file.path(), 65536);
    // A flipped bit may turn the name of one byte order into that of the other.
    const bool is_certain = way.is_readable || kind != 4;
    if (read && is_certain) {
      EXPECT_TRUE(way.is_readable && *read == tokens) << way.name << kind;
    }
    if (way.is_readable && (kind == 2 || kind == 5)) {
      EXPECT_TRUE(read.has_value()) << way.name;
    }
    accepted += read ? 1 : 0;
  }
  EXPECT_GT(accepted, kFiles / 8);
}

// Files of other programs and uniform noise.
TEST(OddTokenFiles, OfOtherKindsAreRefused) {
  FileDraw draw;
  const std::vector<std::string> heads = {std::string("PK\3\4", 4),
                                          std::string("\x1f\x8b\x08\0", 4),
                                          "\x28\xb5\x2f\xfd",
                                          std::string("\xfd\x37zXZ\0", 6),
                                          "\x89HDF\r\n\x1a\n",
                                          "ARROW1",
                                          "PAR1",
                                          "%PDF-1.5",
                                          std::string("\x10\0\0\0\0\0\0\0{\"", 10),
                                          std::string("MMIDIDX\0\0", 9),
                                          "\x89PNG\r\n\x1a\n",
                                          "\xff\xd8\xff\xe0",
                                          "GGUF",
                                          "SQLite format 3",
                                          "\x7f"
                                          "ELF"};
  for (int i = 0; i < kFiles; ++i) {
    std::string bytes = heads[static_cast<std::size_t>(i) % heads.size()];
    const std::uint32_t count = 4096 + draw.below(4096);
    for (std::uint32_t k = 0; k < count; ++k) bytes += static_cast<char>(draw.below(256));
    if (bytes.size() % 2 == 1) bytes += '\0';
    const TokenFileOf file(bytes);
    EXPECT_FALSE(read_tokens(file.path(), 65536).has_value()) << i;
  }
}

}  // namespace
}  // namespace motley
