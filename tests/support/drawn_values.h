// Random values for round trips. They draw from RapidCheck, therefore only inside a property.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/property.h"

namespace motley {

// 1 to 20 letters and digits.
inline std::string drawn_word() {
  const auto length = *rc::gen::inRange<std::size_t>(1, 21);
  return *rc::gen::container<std::string>(
      length, rc::gen::elementOf(std::string("abcxyzABCXYZ0123456789")));
}

// Any Unicode text, also empty.
inline std::string drawn_text() {
  std::string text;
  for (const char* piece : *rc::gen::container<std::vector<const char*>>(rc::gen::elementOf(
           std::vector<const char*>{"a", " ", "\"", "\\", "\n", "ö", "😀", "{"}))) {
    text += piece;
  }
  return text;
}

// From `min` to `max`, small and large ones.
template <class Int>
Int drawn_whole(Int min, Int max) {
  const std::int64_t near_end = std::min<std::int64_t>(max, std::int64_t{min} + 10);
  return static_cast<Int>(*rc::gen::oneOf(rc::gen::inRange<std::int64_t>(min, near_end + 1),
                                          rc::gen::inRange<std::int64_t>(min, max),
                                          rc::gen::just(std::int64_t{max})));
}

// From 0 to `max`, many with all bits of a double.
inline double drawn_quantity(double max) {
  const auto mantissa = *rc::gen::inRange<std::int64_t>(0, (std::int64_t{1} << 53) + 1);
  return max * (static_cast<double>(mantissa) / static_cast<double>(std::int64_t{1} << 53));
}

inline bool drawn_flag() {
  return *rc::gen::arbitrary<bool>();
}

// At least `size_min` values, up to three more.
template <class Draw>
auto drawn_list(std::size_t size_min, const Draw& draw) {
  std::vector<decltype(draw())> list(*rc::gen::inRange(size_min, size_min + 4));
  for (auto& item : list) item = draw();
  return list;
}

}  // namespace motley
