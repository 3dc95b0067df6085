#include "base/process/line_splitter.h"

#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>

namespace motley {
namespace {

std::vector<std::string> lines_of(LineSplitter& splitter) {
  std::vector<std::string> lines;
  while (const auto line = splitter.next()) lines.push_back(*line);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineSplitter, JoinsALineThatCameInPieces) {
  LineSplitter splitter(100);
  splitter.add("on");
  EXPECT_EQ(lines_of(splitter), Lines{});
  splitter.add("e\ntwo\nthr");
  EXPECT_EQ(lines_of(splitter), (Lines{"one", "two"}));
  EXPECT_EQ(splitter.take_rest(), "thr");
}

TEST(LineSplitter, TakesLineEndsOfBothKinds) {
  LineSplitter splitter(100);
  splitter.add("one\r\n\ntwo\n");
  EXPECT_EQ(lines_of(splitter), (Lines{"one", "", "two"}));
}

TEST(LineSplitter, SaysWhenALineIsTooLong) {
  LineSplitter splitter(4);
  splitter.add("1234");
  EXPECT_EQ(splitter.next(), std::nullopt);
  EXPECT_FALSE(splitter.too_long());
  splitter.add("5");
  EXPECT_EQ(splitter.next(), std::nullopt);
  EXPECT_TRUE(splitter.too_long());
}

TEST(LineSplitter, StartsAfreshOnceTheRestIsTaken) {
  LineSplitter splitter(4);
  splitter.add("123456");
  EXPECT_EQ(splitter.take_rest(), "123456");
  splitter.add("7\n");
  EXPECT_EQ(lines_of(splitter), Lines{"7"});
}

TEST(LineSplitter, GivesTheSameLinesHoweverTheBytesAreCut) {
  EXPECT_TRUE(rc::check([]() {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n')));
    std::string text;
    LineSplitter uncut(1000000);
    LineSplitter cut(1000000);
    Lines cut_lines;
    for (const std::string& piece : pieces) {
      text += piece;
      cut.add(piece);
      for (std::string& line : lines_of(cut)) cut_lines.push_back(std::move(line));
    }
    uncut.add(text);
    RC_ASSERT(lines_of(uncut) == cut_lines);
    RC_ASSERT(uncut.take_rest() == cut.take_rest());
  }));
}

}  // namespace
}  // namespace motley
