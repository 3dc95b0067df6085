#include <gtest/gtest.h>

#include "base/toml.h"

namespace motley {
namespace {

TEST(WordList, EndsWithTheConjunction) {
  EXPECT_EQ(word_list({}, "or"), "");
  EXPECT_EQ(word_list({"a"}, "or"), "a");
  EXPECT_EQ(word_list({"a", "b"}, "and"), "a and b");
  EXPECT_EQ(word_list({"a", "b", "c"}, "or"), "a, b or c");
}

}  // namespace
}  // namespace motley
