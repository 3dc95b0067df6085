#include "watch/terminal/screen.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/support/property.h"
#include "watch/terminal/screen_text.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json rank_of(const char* name, const char* machine, double planned_s) {
  return {{"name", name},
          {"machine", machine},
          {"device", "cpu"},
          {"chunks", {{0, 3}, {8, 8}}},
          {"predicted", {{"compute_s", planned_s}, {"memory_bytes", 1 << 30}, {"sent_bytes", 0}}},
          {"memory_limit_bytes", nullptr}};
}

struct ShownRun {
  Json description = {
      {"run", {{"name", "gpt"}, {"model", "gpt2, 4 layers of width 64"}, {"state", "training"}}},
      {"ranks", {rank_of("stage 0 (desk)", "desk", 0.2), rank_of("stage 1 (box)", "box", 0.4)}},
      {"links",
       {{{"from", 0},
         {"to", 1},
         {"from_machine", "desk"},
         {"to_machine", "box"},
         {"codec", "fp16"},
         {"bandwidth_bytes_s", 12.5e6},
         {"predicted_bytes", 4e6}}}}};
  Json state = {
      {"step", 120},
      {"steps", 1000},
      {"loss", 2.314},
      {"step_s", 0.5},
      {"predicted_step_s", 0.4},
      {"tokens_per_s", 1234},
      {"eta_s", 331},
      {"verdict",
       {{"level", "watch"},
        {"text", "box is the bottleneck: +25 % over plan"},
        {"advice", "end other programs there"}}},
      {"ranks",
       {{{"compute_s", 0.2},
         {"codec_s", 0},
         {"optimizer_s", 0},
         {"wait_s", {{"activation", 0.1}, {"gradient", 0.2}}},
         {"memory_bytes", 1 << 29}},
        {{"compute_s", 0.5},
         {"codec_s", 0},
         {"optimizer_s", 0},
         {"wait_s", Json::object()},
         {"memory_bytes", nullptr}}}},
      {"links", {{{"from", 0}, {"to", 1}, {"bytes_s", 8e6}}}},
      {"losses",
       {{"imbalance", 0.3}, {"links_and_filling", 0.05}, {"codec", 0.01}, {"optimizer", nullptr}}}};
  Json history = {{"step", {1, 2, 3}}, {"loss", {3.0, nullptr, 2.0}}};
  Json events = {{{"time", 1.8e9}, {"step", 100}, {"kind", "checkpoint"}, {"text", "saved it"}}};

  [[nodiscard]] std::vector<ScreenLine> lines(ScreenSize size) const {
    return screen_lines({description, state, history, events}, size);
  }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const ScreenLine& line : lines({120, 40})) all += line.text + "\n";
    return all;
  }
};

TEST(Screen, ShowsTheVerdictBeforeTheFigures) {
  const auto lines = ShownRun().lines({120, 40});
  EXPECT_EQ(lines[0],
            (ScreenLine{"gpt  gpt2, 4 layers of width 64  training", LineStyle::kStrong}));
  EXPECT_EQ(lines[1],
            (ScreenLine{"watch: box is the bottleneck: +25 % over plan", LineStyle::kWatch}));
  EXPECT_EQ(lines[3].text,
            "step 120/1000  loss 2.314  1,234 tok/s  500.00 ms a step (planned 400.00 ms)  "
            "ETA 0:05:31");
}

TEST(Screen, ShowsEachStageLinkAndEvent) {
  const std::string text = ShownRun().text();
  EXPECT_THAT(text, HasSubstr("stage 1 (box)   cpu     0-3,8   500.00 ms  400.00 ms  +25 %"));
  EXPECT_THAT(text, HasSubstr("desk → box  fp16   64.0 Mbit/s  100 Mbit/s"));
  EXPECT_THAT(text,
              HasSubstr("unequal work 30.0 %, links and filling 5.0 %, messages and codecs 1.0 %"));
  EXPECT_THAT(text, HasSubstr("08:00:00  checkpoint  saved it"));
  EXPECT_THAT(text, HasSubstr("loss  █ ▁"));
}

TEST(Screen, ShowsARunThatTellsNothingYet) {
  ShownRun run;
  run.state = {{"step", 0},
               {"steps", nullptr},
               {"verdict", {{"level", "good"}, {"text", "too few steps yet"}, {"advice", nullptr}}},
               {"ranks", Json::array()},
               {"links", Json::array()},
               {"losses", Json::object()}};
  run.history = {{"step", Json::array()}, {"loss", Json::array()}};
  run.events = Json::array();
  EXPECT_THAT(run.text(), HasSubstr("stage 0 (desk)"));
  EXPECT_EQ(one_line(run.state), "step 0  good: too few steps yet");
}

TEST(Screen, ALowOneHasTheStagesAndAllOfTheAdvice) {
  ShownRun run;
  run.state["verdict"]["advice"] = "end other programs there and look at its cooling and mains";
  std::string text;
  for (const ScreenLine& line : run.lines({40, 14})) text += line.text + "\n";
  EXPECT_THAT(text, HasSubstr("end other programs there and look at its\ncooling and mains\n"));
  EXPECT_THAT(text, HasSubstr("stage 1 (box)"));
}

TEST(Screen, ASimulatedRunIsMarkedAndHasNoCurve) {
  ShownRun run;
  run.state["virtual"] = true;
  run.history["loss"] = {nullptr, nullptr, nullptr};
  EXPECT_THAT(one_line(run.state), HasSubstr("step 120/1000  virtual  "));
  EXPECT_THAT(run.text(), testing::Not(HasSubstr("\nloss")));
  EXPECT_THAT(run.text(), testing::Not(HasSubstr("held-out")));
  run.state["eval"] = {{"loss", 2.401}, {"accuracy", 0.4531}, {"top5_accuracy", nullptr}};
  EXPECT_THAT(run.text(), HasSubstr("held-out 2.401, 45.31 % correct"));
}

// No line is wider than the screen, the screen is not too high, and no text of a run moves the
// cursor.
RC_GTEST_PROP(ScreenProperty, FitsAndHoldsNoControls, ()) {
  ShownRun run;
  const auto name = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  run.description["run"]["name"] = name;
  run.description["ranks"][0]["name"] = name;
  run.state["verdict"]["text"] = name;
  run.events[0]["text"] = name;
  run.events[0]["time"] = *rc::gen::arbitrary<double>();
  const ScreenSize size{*rc::gen::inRange<std::size_t>(1, 150),
                        *rc::gen::inRange<std::size_t>(1, 60)};
  const auto lines = run.lines(size);
  RC_ASSERT(lines.size() <= size.rows);
  for (const ScreenLine& line : lines) {
    RC_ASSERT(columns_of(line.text) <= size.columns);
    RC_ASSERT(harmless(line.text) == line.text);
  }
}

RC_GTEST_PROP(HarmlessText, IsPrintableAndStays, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const std::string shown = harmless(text);
  RC_ASSERT(harmless(shown) == shown);
  for (const char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  // It is valid UTF-8: a JSON string may contain it.
  RC_ASSERT(parse_json(Json(shown).dump(), "shown").ok());
}

TEST(HarmlessText, KeepsWhatPeopleRead) {
  EXPECT_EQ(harmless("desk → box, Größe"), "desk → box, Größe");
  EXPECT_EQ(harmless("a\x1b[2Jb\n"), "a?[2Jb?");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "2J"),
            "?2J");
  EXPECT_EQ(harmless("\xff\xe2\x86"), "???");
}

TEST(ScreenText, ClipsAtCharacters) {
  EXPECT_EQ(clipped("→→→", 2), "→→");
  EXPECT_EQ(clipped("ab", 5), "ab");
  EXPECT_EQ(clipped("ab", 0), "");
}

TEST(ScreenText, WrapsAtSpaces) {
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("→→→→ b", 3), ElementsAre("→→→", "→ b"));
  EXPECT_TRUE(wrapped("", 3).empty());
}

TEST(ScreenText, DrawsProgressAndCurves) {
  EXPECT_EQ(progress_bar(0.5, 18), "[#####-----]  50 %");
  EXPECT_EQ(columns_of(progress_bar(std::nan(""), 30)), 30U);
  EXPECT_EQ(progress_bar(7, 3), " 10");
  EXPECT_EQ(sparkline({0, 7, std::nan(""), 3.5}), "▁█ ▅");
  EXPECT_EQ(sparkline({2, 2}), "▁▁");
  EXPECT_EQ(sparkline({-1.7e308, 1.7e308}), "▁█");
  EXPECT_EQ(duration_text(3661), "1:01:01");
  EXPECT_EQ(duration_text(std::nan("")), "?");
}

TEST(ScreenText, AlignsNamesLeftAndNumbersRight) {
  EXPECT_THAT(aligned_lines({{"a", "1"}, {"→b", "100"}}, 1), ElementsAre("a     1", "→b  100"));
}

}  // namespace
}  // namespace motley
