#include "data/files/text_encoding.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace motley {
namespace {

constexpr TextEncoding kWide[] = {TextEncoding::kUtf16Le, TextEncoding::kUtf16Be,
                                  TextEncoding::kUtf32Le, TextEncoding::kUtf32Be};

// Independent of the decoder: code points as units of the encoding.
std::string encoded(const std::vector<std::uint32_t>& points, TextEncoding encoding) {
  const bool is_wide = encoding == TextEncoding::kUtf32Le || encoding == TextEncoding::kUtf32Be;
  const bool is_big = encoding == TextEncoding::kUtf16Be || encoding == TextEncoding::kUtf32Be;
  std::string bytes;
  const auto add = [&](std::uint32_t unit) {
    const int size = is_wide ? 4 : 2;
    for (int i = 0; i < size; ++i) {
      bytes += static_cast<char>(unit >> 8 * (is_big ? size - 1 - i : i) & 0xFF);
    }
  };
  for (const std::uint32_t point : points) {
    if (is_wide || point < 0x10000) {
      add(point);
    } else {
      add(0xD800 + ((point - 0x10000) >> 10));
      add(0xDC00 + ((point - 0x10000) & 0x3FF));
    }
  }
  return bytes;
}

const std::vector<std::uint32_t> kLine = {'l', 'a', 'y', 'e',  'r',    's',     ' ', 'a',
                                          'n', 'd', ' ', 0xE9, 0x20AC, 0x1F600, '\n'};
constexpr const char* kLineUtf8 = "layers and \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n";

TEST(TextEncodings, AreKnownByTheirMark) {
  for (const TextEncoding encoding : kWide) {
    std::vector<std::uint32_t> points = {0xFEFF};
    points.insert(points.end(), kLine.begin(), kLine.end());
    const std::string bytes = encoded(points, encoding);
    EXPECT_EQ(text_encoding(bytes), encoding);
    EXPECT_EQ(to_utf8(bytes, encoding), kLineUtf8);
  }
}

TEST(TextEncodings, AreFoundOutWithoutAMark) {
  std::vector<std::uint32_t> points;
  for (int i = 0; i < 20; ++i)
    points.insert(points.end(), {'m', 'o', 't', 'l', 'e', 'y', ' ', '\n'});
  points.push_back(0x20AC);
  for (const TextEncoding encoding : kWide) {
    EXPECT_EQ(text_encoding(encoded(points, encoding)), encoding) << static_cast<int>(encoding);
  }
}

TEST(TextEncodings, LeaveBytesWithoutNulAlone) {
  EXPECT_EQ(text_encoding("plain"), TextEncoding::kBytes);
  EXPECT_EQ(text_encoding(""), TextEncoding::kBytes);
  EXPECT_EQ(text_encoding("caf\xe9 in Latin-1"), TextEncoding::kBytes);
  EXPECT_EQ(text_encoding("\xEF\xBB\xBFwith a mark"), TextEncoding::kBytes);
  EXPECT_EQ(text_encoding("\xFF\xFEodd"), TextEncoding::kBytes);
}

TEST(TextEncodings, AreNoneOfBinaryFiles) {
  EXPECT_EQ(text_encoding(std::string("a\0b", 3)), std::nullopt);
  EXPECT_EQ(text_encoding(std::string(64, '\0')), std::nullopt);
  // Token files of small vocabularies have the form of UTF-16, but control characters.
  std::string tokens;
  for (int i = 0; i < 300; ++i) tokens += std::string{static_cast<char>(1 + i % 60), '\0'};
  const auto encoding = text_encoding(tokens);
  EXPECT_TRUE(!encoding || !to_utf8(tokens, *encoding));
}

TEST(TextEncodings, RefuseHalvesOfCharacters) {
  EXPECT_EQ(to_utf8(std::string("a\0b", 3), TextEncoding::kUtf16Le), std::nullopt);
  EXPECT_EQ(to_utf8(encoded({'a', 0xD83D}, TextEncoding::kUtf32Le), TextEncoding::kUtf32Le),
            std::nullopt);
  EXPECT_EQ(to_utf8(std::string("\x3D\xD8"), TextEncoding::kUtf16Le), std::nullopt);
  EXPECT_EQ(to_utf8(std::string("\x00\xDC", 2), TextEncoding::kUtf16Le), std::nullopt);
  EXPECT_EQ(to_utf8(encoded({0x110000}, TextEncoding::kUtf32Be), TextEncoding::kUtf32Be),
            std::nullopt);
}

}  // namespace
}  // namespace motley
