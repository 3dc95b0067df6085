#include "base/system/shell_word.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>

namespace motley {
namespace {

TEST(QuoteForShell, LeavesHarmlessWordsAlone) {
  EXPECT_EQ(quote_for_shell("/opt/motley-1.0/bin"), "/opt/motley-1.0/bin");
}

TEST(QuoteForShell, QuotesWhatAShellWouldInterpret) {
  EXPECT_EQ(quote_for_shell(""), "''");
  EXPECT_EQ(quote_for_shell("$(id)"), "'$(id)'");
  EXPECT_EQ(quote_for_shell("it's"), "'it'\\''s'");
}

// The shell's interpretation of the word, by the rules of single quotes alone.
std::string unquote(const std::string& quoted) {
  std::string word;
  bool inside = false;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '\'') {
      inside = !inside;
    } else if (quoted[i] == '\\' && !inside) {
      word += quoted[++i];
    } else {
      RC_ASSERT(inside || std::string(" $`\"*?;&|<>()~#\n").find(quoted[i]) == std::string::npos);
      word += quoted[i];
    }
  }
  RC_ASSERT(!inside);
  return word;
}

TEST(QuoteForShell, IsReadBackAsTheSameWord) {
  EXPECT_TRUE(rc::check([]() {
    const auto word = *rc::gen::container<std::string>(
        rc::gen::element('a', ' ', '\'', '"', '$', '\\', '`', '*', ';', '\n', '/'));
    RC_ASSERT(unquote(quote_for_shell(word)) == word);
  }));
}

}  // namespace
}  // namespace motley
