// Extraction of a command's output from the shell's other output.
#include "cluster/reach/framed_output.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/shell_word.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::Optional;

constexpr const char* kMark = "motley0123456789abcdef";

// The answer from both streams of a shell that runs `before`, as from a start-up file, and then
// the framed command.
FramedOutput answer_of(const std::string& before, const std::vector<std::string>& command) {
  std::string line = before + "; ";
  for (const std::string& word : framed_command(command, kMark))
    line += quote_for_shell(word) + " ";
  const std::string errors = testing::TempDir() + "framed-errors";
  const std::string run = fmt::format("bash -c {} 2>{}", quote_for_shell(line), errors);
  const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(run.c_str(), "r"), ::pclose);
  FramedOutput answer(kMark);
  char block[7];  // smaller than the marks, so they arrive in pieces
  while (const std::size_t count = std::fread(block, 1, sizeof block, output.get())) {
    answer.add_output({block, count});
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(errors.c_str(), "r"), ::fclose);
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get())) {
    answer.add_errors({block, count});
  }
  return answer;
}

TEST(FramedOutput, IsTheSameWhateverTheShellPrints) {
  for (const char* greeting :
       {"true", "head -c 5000 /dev/zero | tr '\\0' x", "printf 'no end of line'",
        "printf '\\033[31mred\\033[0m {\"event\": 1}\\n'", "head -c 3000 /dev/urandom",
        "echo to standard error >&2", "set -x", "set -v", "set -u", "printf 'dos\\r\\nlines\\r\\n'",
        "trap 'echo left; exit 9' EXIT"}) {
    const FramedOutput answer = answer_of(greeting, {"sh", "-c", "echo one; echo two; exit 3"});
    EXPECT_THAT(answer.status(), Optional(3)) << greeting;
    EXPECT_EQ(answer.said(), "one\ntwo\n") << greeting;
    EXPECT_EQ(answer.last_error_line(), "") << greeting;
  }
}

TEST(FramedOutput, HasTheCommandsOwnWordsOnStandardError) {
  EXPECT_EQ(answer_of("echo greeting >&2", {"sh", "-c", "echo missing >&2"}).last_error_line(),
            "missing");
}

TEST(FramedOutput, NeverBeginsWhereTheShellDoesNotRunTheCommand) {
  const FramedOutput answer = answer_of("echo no >&2; exit 0", {"true"});
  EXPECT_FALSE(answer.has_begun());
  EXPECT_FALSE(answer.status());
  EXPECT_EQ(answer.last_error_line(), "no");
}

TEST(FramedOutput, IsNotWholeBeforeItsSecondMark) {
  FramedOutput answer(kMark);
  answer.add_output(fmt::format("\n{}-begin\r\nwords\r\n\n{}-end 1", kMark, kMark));
  EXPECT_TRUE(answer.has_begun());
  EXPECT_FALSE(answer.status());
  answer.add_output("2\n");
  EXPECT_THAT(answer.status(), Optional(12));
  EXPECT_EQ(answer.said(), "words\n");
}

// For any division into pieces, and any surrounding output.
RC_GTEST_PROP(FramedOutput, ComesInAnyPieces, ()) {
  const auto before = *rc::gen::arbitrary<std::string>();
  const auto said = *rc::gen::string<std::string>();
  RC_PRE(said.find('\r') == std::string::npos);
  const std::string all =
      before + fmt::format("\n{0}-begin\n", kMark) + said + fmt::format("\n{0}-end 7\n", kMark);
  FramedOutput answer(kMark);
  for (std::size_t at = 0; at < all.size();) {
    const auto bytes = *rc::gen::inRange<std::size_t>(1, 40);
    answer.add_output(std::string_view(all).substr(at, bytes));
    at += bytes;
  }
  RC_ASSERT(answer.status() == 7);
  RC_ASSERT(answer.said() == said);
}

}  // namespace
}  // namespace motley
