#include "partitioner/simulate/svg_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Every element that opens closes in its turn, and no bare '&' or '<' stands in a text.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = xml.find("?>") + 2;
  while ((at = xml.find('<', at)) != std::string::npos) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

const std::vector<TraceSpan> kSpans = {
    {{0}, "compute", "F0.0", 0, 1},         {{0}, "codec", "SA0.0", 1, 0.25},
    {{0}, "link to 1", "SA0.0", 1.25, 0.5}, {{1}, "wait", "F1.0", 0, 1.75},
    {{1}, "compute", "B1.0", 1.75, 2},      {{1}, "compute", "BW1.0", 3.75, 1}};

TEST(SvgTimeline, DrawsEverySpanInTheColourOfItsKind) {
  const std::string svg = svg_timeline(kSpans, {"a/cpu", "b/cpu"}, {.title = "two ranks"});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("two ranks"));
  EXPECT_THAT(svg, HasSubstr("SA0.0 link to 1"));
  for (const char* colour : {"#4e79a7", "#59a14f", "#8cd17d", "#f28e2b", "#e3e3e3", "#e15759"}) {
    EXPECT_EQ(count_of(svg, colour), 2U) << colour;  // a span and the legend
  }
  EXPECT_EQ(count_of(svg, " from "), kSpans.size());
}

TEST(SvgTimeline, PutsSpansWhereTheirTimeIs) {
  const std::string svg = svg_timeline({{{0}, "compute", "F0.0", 1, 1}}, {"a"}, {});
  // Half of the 1070 pixels between x = 190 and x = 1260.
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="725.00" y="74" width="535.00")"));
}

TEST(SvgTimeline, EscapesNames) {
  const std::string name = "<b> & \"c\"\x01";
  const std::string svg =
      svg_timeline({{{0}, "compute", name, 0, 1}}, {name}, {.title = "a < b & c"});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt; &amp; &quot;c&quot;?"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(SvgTimeline, ShortensLongNamesBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "ä";
  const std::string svg = svg_timeline({}, {name}, {});
  EXPECT_THAT(svg, HasSubstr("ä…</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>" + name + "</title>"));
}

TEST(SvgTimeline, SaysWhatItLeavesOut) {
  const std::string svg =
      svg_timeline(kSpans, {"a", "b", "c"}, {.title = "", .ranks_max = 1, .spans_max = 2});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_THAT(svg, HasSubstr("the first 1 of 3 ranks"));
  EXPECT_THAT(svg, HasSubstr("the 1 shortest spans are left out"));
  EXPECT_EQ(count_of(svg, " from "), 2U);
}

TEST(SvgTimeline, KeepsAsManyAsFitWhenAllAreOfOneLength) {
  const std::vector<TraceSpan> equal(10, {{0}, "compute", "F0.0", 0, 1});
  EXPECT_EQ(count_of(svg_timeline(equal, {"a"}, {.title = "", .spans_max = 4}), " from "), 4U);
  EXPECT_EQ(count_of(svg_timeline(equal, {"a"}, {.title = "", .spans_max = 0}), " from "), 0U);
}

TEST(SvgTimeline, DrawsAStepWithoutSpans) {
  EXPECT_TRUE(is_well_formed(svg_timeline({}, {}, {})));
}

}  // namespace
}  // namespace motley
