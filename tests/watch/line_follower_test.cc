#include "watch/view/line_follower.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/property.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineFollowerTest : public testing::Test {
 protected:
  LineFollowerTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ =
        std::filesystem::path(testing::TempDir()) / (std::string("motley-lines-") + info->name());
    std::filesystem::remove(path_);
  }

  ~LineFollowerTest() override { std::filesystem::remove(path_); }

  void add(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  std::filesystem::path path_;
};

TEST_F(LineFollowerTest, GivesWholeLinesOnce) {
  LineFollower follower(path_, 100);
  EXPECT_THAT(follower.poll().lines, IsEmpty());
  add("one\ntw");
  EXPECT_THAT(follower.poll().lines, ElementsAre("one"));
  EXPECT_THAT(follower.poll().lines, IsEmpty());
  add("o\nthree\n");
  const auto news = follower.poll();
  EXPECT_THAT(news.lines, ElementsAre("two", "three"));
  EXPECT_FALSE(news.begins_anew);
}

TEST_F(LineFollowerTest, BeginsAnewAfterACut) {
  LineFollower follower(path_, 100);
  add("one\ntwo\nthree\n");
  ASSERT_EQ(follower.poll().lines.size(), 3U);
  std::filesystem::resize_file(path_, 4);
  const auto news = follower.poll();
  EXPECT_TRUE(news.begins_anew);
  EXPECT_THAT(news.lines, ElementsAre("one"));
}

// The writer is faster than the reader: at the next poll the file is longer than before.
TEST_F(LineFollowerTest, NoticesACutThatWasFilledAgain) {
  LineFollower follower(path_, 100);
  add("one\ntwo\nthree\n");
  ASSERT_EQ(follower.poll().lines.size(), 3U);
  std::filesystem::resize_file(path_, 4);
  add("zwei\ndrei\nvier\n");
  const auto news = follower.poll();
  EXPECT_TRUE(news.begins_anew);
  EXPECT_THAT(news.lines, ElementsAre("one", "zwei", "drei", "vier"));
}

TEST_F(LineFollowerTest, NoticesAnotherFileOfTheName) {
  LineFollower follower(path_, 100);
  add("one\n");
  ASSERT_EQ(follower.poll().lines.size(), 1U);
  std::filesystem::rename(path_, path_.string() + ".old");
  EXPECT_TRUE(follower.poll().begins_anew);
  add("other\n");
  EXPECT_THAT(follower.poll().lines, ElementsAre("other"));
  std::filesystem::remove(path_.string() + ".old");
}

TEST_F(LineFollowerTest, LeavesOutALineThatIsTooLong) {
  LineFollower follower(path_, 10);
  add("short\n" + std::string(50, 'x'));
  EXPECT_THAT(follower.poll().lines, ElementsAre("short"));
  add(std::string(50, 'x') + "\nnext\n");
  EXPECT_THAT(follower.poll().lines, ElementsAre("next"));
  EXPECT_EQ(follower.left_out(), 1);
}

TEST_F(LineFollowerTest, ReadsALargeFileInPieces) {
  const std::string line(1000, 'y');
  std::string text;
  while (text.size() < 2 * LineFollower::kPieceBytes) text += line + "\n";
  add(text);
  LineFollower follower(path_, 2000);
  std::size_t count = 0;
  for (bool has_more = true; has_more;) {
    const auto news = follower.poll();
    for (const std::string& each : news.lines) EXPECT_EQ(each, line);
    count += news.lines.size();
    has_more = news.has_more;
  }
  EXPECT_EQ(count, text.size() / (line.size() + 1));
}

// For any sequence of writes, truncations and polls: the lines returned since the last restart are
// the complete lines of the file.
RC_GTEST_PROP(LineFollowerProperty, GivesWhatStandsInTheFile, ()) {
  const auto path = std::filesystem::path(testing::TempDir()) / "motley-lines-property";
  std::filesystem::remove(path);
  LineFollower follower(path, 1000);
  std::string text;
  std::vector<std::string> given;
  const auto steps = *rc::gen::inRange(1, 12);
  for (int i = 0; i < steps; ++i) {
    if (*rc::gen::inRange(0, 3) == 0) {
      text.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
      std::ofstream(path, std::ios::trunc) << text;
    }
    // All pieces differ, as all steps do.
    const auto length = *rc::gen::inRange<std::size_t>(0, 30);
    text += std::to_string(i) + std::string(length, 'a') + (length % 3 == 0 ? "" : "\n");
    std::ofstream(path, std::ios::trunc) << text;
    if (*rc::gen::inRange(0, 2) == 0 && i + 1 < steps) continue;
    const auto news = follower.poll();
    if (news.begins_anew) given.clear();
    given.insert(given.end(), news.lines.begin(), news.lines.end());
  }
  std::vector<std::string> whole;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;) {
    whole.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  RC_ASSERT(given == whole);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace motley
