// Random damage to a document: pieces are removed, duplicated or replaced by others.
#pragma once

#include <string>
#include <vector>

#include "tests/support/property.h"

namespace motley {

// A fragment of `fragments`, which is meaningful to the parser, or arbitrary bytes.
inline std::string fragment(const std::vector<std::string>& fragments) {
  return *rc::gen::oneOf(rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
                         rc::gen::elementOf(fragments));
}

// Draws from RapidCheck, therefore only inside a property.
inline std::string damaged(std::string text, const std::vector<std::string>& fragments) {
  const auto place = [&] { return *rc::gen::inRange<std::size_t>(0, text.size() + 1); };
  const int changes = *rc::gen::inRange(1, 5);
  for (int change = 0; change < changes; ++change) {
    const std::size_t at = place();
    const std::size_t length = *rc::gen::inRange<std::size_t>(0, 40);
    const std::string piece = text.substr(at, length);
    const int kind = *rc::gen::inRange(0, 4);
    if (kind == 0) text.erase(at, length);
    if (kind == 1) text.insert(place(), piece);
    if (kind == 2) text.insert(at, fragment(fragments));
    if (kind == 3) text.replace(at, piece.size(), fragment(fragments));
  }
  return text;
}

// Fragments that are meaningful in TOML and JSON.
inline const std::vector<std::string>& fragments_of_text() {
  static const std::vector<std::string> fragments = {"{",
                                                     "}",
                                                     "[",
                                                     "]",
                                                     "[[machine]]\n",
                                                     "\"",
                                                     "'",
                                                     ",",
                                                     ":",
                                                     "=",
                                                     "\n",
                                                     "#",
                                                     "\\",
                                                     "\\u0000",
                                                     "null",
                                                     "nan",
                                                     "-1",
                                                     "-inf",
                                                     "1e999",
                                                     "0.1.2.3.4.5.6.7.8.9",
                                                     "\xff",
                                                     "99999999999999999999",
                                                     "18446744073709551615"};
  return fragments;
}

// Fragments that are meaningful in binary formats with little-endian numbers.
inline const std::vector<std::string>& fragments_of_bytes() {
  static const std::vector<std::string> fragments = {
      std::string(1, '\0'),          std::string(4, '\0'),       std::string(4, '\xff'),
      std::string(8, '\xff'),        std::string("\1\0\0\0", 4), std::string("\0\0\0\x80", 4),
      std::string("\0\0\xf8\x7f", 4)};
  return fragments;
}

}  // namespace motley
