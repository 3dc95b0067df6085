// A text with one part replaced, for damaged or changed packages.
#pragma once

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

namespace motley {

// `text` with the first `old` replaced; the test fails if there is none.
inline std::string replaced(std::string text, const std::string& old, const std::string& with) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  if (at == text.npos) return text;
  return text.replace(at, old.size(), with);
}

}  // namespace motley
