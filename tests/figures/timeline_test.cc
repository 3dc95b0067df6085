#include "figures/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/figures/markup.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<TraceSpan> kSpans = {
    {{0}, "compute", "F0.0", 0, 1},         {{0}, "codec", "SA0.0", 1, 0.25},
    {{0}, "link to 1", "SA0.0", 1.25, 0.5}, {{1}, "wait", "F1.0", 0, 1.75},
    {{1}, "compute", "B1.0", 1.75, 2},      {{1}, "compute", "BW1.0", 3.75, 1}};

std::string drawn(const std::vector<TraceSpan>& spans,
                  const std::vector<std::string>& names,
                  const TimelineOptions& options) {
  return svg_file(options.title, {timeline(spans, names, options)});
}

TEST(Timeline, DrawsEverySpanInTheLookOfItsKind) {
  const std::string svg = drawn(kSpans, {"a/cpu", "b/cpu"}, {.title = "two ranks"});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("two ranks"));
  EXPECT_THAT(svg, HasSubstr("SA0.0 link to 1"));
  for (const char* look : {"forward", "backward", "weights", "codec", "wait", "link"}) {
    // One span and the legend.
    EXPECT_EQ(count_of(svg, "class=\"" + std::string(look) + "\""), 2U) << look;
  }
  EXPECT_EQ(count_of(svg, " from "), kSpans.size());
}

TEST(Timeline, PutsSpansWhereTheirTimeIs) {
  const std::string svg = drawn({{{0}, "compute", "F0.0", 1, 1}}, {"a"}, {});
  // Half of the 1070 pixels between x = 190 and x = 1260.
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="725.00" y="74.00" width="535.00")"));
}

TEST(Timeline, DrawsShorterStepsOnALongerAxis) {
  const std::string svg =
      drawn({{{0}, "compute", "F0.0", 0, 1}}, {"a"}, {.title = "", .whole_s = 2});
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="190.00" y="74.00" width="535.00")"));
  EXPECT_THAT(svg, HasSubstr("whole time 1 s"));
}

TEST(Timeline, EscapesNames) {
  const std::string name = "<b> & \"c\"\x01";
  const std::string svg = drawn({{{0}, "compute", name, 0, 1}}, {name}, {.title = "a < b & c"});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt; &amp; &quot;c&quot;?"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(Timeline, ShortensLongNamesBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "ä";
  const std::string svg = drawn({}, {name}, {});
  EXPECT_THAT(svg, HasSubstr("ä…</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>" + name + "</title>"));
}

TEST(Timeline, SaysWhatItLeavesOut) {
  const std::string svg =
      drawn(kSpans, {"a", "b", "c"}, {.title = "", .ranks_max = 1, .spans_max = 2});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_THAT(svg, HasSubstr("the first 1 of 3 ranks"));
  EXPECT_THAT(svg, HasSubstr("the 1 shortest spans are left out"));
  EXPECT_EQ(count_of(svg, " from "), 2U);
}

TEST(Timeline, KeepsAsManyAsFitWhenAllAreOfOneLength) {
  const std::vector<TraceSpan> equal(10, {{0}, "compute", "F0.0", 0, 1});
  EXPECT_EQ(count_of(drawn(equal, {"a"}, {.title = "", .spans_max = 4}), " from "), 4U);
  EXPECT_EQ(count_of(drawn(equal, {"a"}, {.title = "", .spans_max = 0}), " from "), 0U);
}

TEST(Timeline, DrawsAStepWithoutSpans) {
  EXPECT_TRUE(is_well_formed(drawn({}, {}, {})));
}

}  // namespace
}  // namespace motley
