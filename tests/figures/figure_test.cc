#include "figures/figure.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figures/curves.h"
#include "figures/figure_text.h"
#include "figures/html_page.h"
#include "tests/figures/markup.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(FigureText, MarksWhatXmlDoesNotAllow) {
  EXPECT_EQ(escaped("a\x01\x7F\xFF"
                    "b"),
            "a???b");
  EXPECT_EQ(escaped("\xC0\xAF"), "??");       // an overlong encoding of '/'
  EXPECT_EQ(escaped("\xED\xA0\x80"), "???");  // half of a surrogate pair
  EXPECT_EQ(escaped("\xEF\xBF\xBF"), "???");  // U+FFFF
  EXPECT_EQ(escaped("ä→𝄞"), "ä→𝄞");
  EXPECT_EQ(escaped("\xE2\x86"), "??");  // truncated
}

TEST(FigureText, FitsIntoItsRoom) {
  EXPECT_EQ(fitted("short", 100, 12), "short");
  EXPECT_EQ(fitted("short", 3, 12), "");
  const std::string cut = fitted("a name that is far too long for it", 80, 12);
  EXPECT_THAT(cut, testing::EndsWith("…"));
  EXPECT_LE(text_width(cut, 12), 80);
}

RC_GTEST_PROP(FigureText, AnyBytesBecomeWellFormedPictures, (const std::string& text)) {
  const double width = *rc::gen::inRange(0, 500);
  FigurePen pen;
  pen.text({0, 0}, text);
  pen.text_in(width, {0, 0}, text, "small");
  pen.box({0, 0, 1, 1}, "lane", text);
  const std::string svg = svg_file(text, {std::move(pen).finish(10)});
  RC_ASSERT(is_well_formed(svg));
  HtmlPage page(text);
  page.paragraph(text);
  page.lines(text);
  page.table({{text, text}, {text}});
  RC_ASSERT(is_well_formed(page.text()));
}

TEST(Curves, DrawsGapsAndBeyondTheScale) {
  Curve curve{"loss", {}, false};
  for (int step = 1; step <= 100; ++step) {
    curve.points.push_back({static_cast<double>(step), 1.0});
  }
  curve.points[40].y = std::numeric_limits<double>::quiet_NaN();
  curve.points[60].y = 1000;
  const std::string svg = svg_file("", {curves({curve}, {.title = "t", .share_in_scale = 0.95})});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, "<polyline"), 3U);  // two segments and the legend
  EXPECT_THAT(svg, HasSubstr("1 points lie above the scale"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Curves, WritesTheNumbersOfItsAxesInFull) {
  const Figure figure = curves({{"tokens", {{1, 0}, {2, 20'000}}}}, {.title = "t"});
  EXPECT_THAT(figure.body, AllOf(HasSubstr(">20000<"), Not(HasSubstr("e+"))));
}

TEST(Curves, SaysThatNothingWasRecorded) {
  EXPECT_THAT(curves({{"loss", {}, false}}, {}).body, HasSubstr("no data"));
}

TEST(HtmlPage, FetchesNothingAndRunsNothing) {
  HtmlPage page("<script>alert(1)</script>");
  page.figure("a", FigurePen().finish(10));
  const std::string text = page.text();
  EXPECT_TRUE(is_well_formed(text));
  for (const char* no : {"<script", "<link", "<img", "src=", "href="})
    EXPECT_THAT(text, Not(HasSubstr(no)));
}

}  // namespace
}  // namespace motley
