#include "pipeline/schedule/action.h"

#include "tests/pipeline/schedule_fixtures.h"

namespace motley {
namespace {

constexpr const char* kGood =
    "schedule 1f1b micro_batches=1 owners=0,1\n"
    "rank 0: L0 ST0 RG0.0 F0.0 SA0.0 B0.0 V S\n"
    "rank 1: RT0 RA1.0 F1.0 B1.0 SG1.0 V S\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto schedule = parse_schedule(text, "s.txt");
  return schedule.ok() ? "accepted" : schedule.error().what;
}

TEST(ActionText, NamesChunkAndMicroBatch) {
  EXPECT_EQ(to_text(Action{ActionKind::kForward, {1}, {3}}), "F1.3");
  EXPECT_EQ(to_text(Action{ActionKind::kLoad, {}, {0}}), "L0");
  EXPECT_EQ(to_text(Action{ActionKind::kVote, {}, {}}), "V");
  EXPECT_EQ(to_text(Action{ActionKind::kReduce, {2}, {}}), "R2");
  EXPECT_EQ(to_text(Action{ActionKind::kBackwardInput, {1}, {3}}), "BI1.3");
  EXPECT_EQ(to_text(Action{ActionKind::kBackwardWeight, {1}, {3}}), "BW1.3");
  EXPECT_EQ(to_words(Action{ActionKind::kForward, {1}, {3}}), "forward of micro-batch 3");
  EXPECT_EQ(to_words(Action{ActionKind::kStep, {}, {}}), "the update");
}

TEST(ScheduleText, ReadsWhatItPrints) {
  const auto schedule = parse_schedule(kGood, "s.txt");
  ASSERT_TRUE(schedule.ok()) << schedule.error().what;
  EXPECT_EQ(to_text(*schedule), kGood);
  EXPECT_EQ(schedule->ranks[0][3], (Action{ActionKind::kForward, {0}, {0}}));
}

TEST(ScheduleText, NamesLineAndWordOfDamage) {
  EXPECT_EQ(error_of(replaced(kGood, "F1.0", "X1.0")), "bad schedule word 'X1.0', s.txt:3");
  EXPECT_EQ(error_of(replaced(kGood, "F0.0", "F0")), "bad schedule word 'F0', s.txt:2");
  EXPECT_EQ(error_of(replaced(kGood, "L0", "L-1")), "bad schedule word 'L-1', s.txt:2");
  EXPECT_EQ(error_of(replaced(kGood, "V S", "V1 S")), "bad schedule word 'V1', s.txt:2");
  EXPECT_EQ(error_of(replaced(kGood, "L0", "L99999999999")),
            "bad schedule word 'L99999999999', s.txt:2");
  EXPECT_EQ(error_of(replaced(kGood, "=0,1", "=0,")), "bad schedule word '', s.txt:1");
  EXPECT_EQ(error_of(replaced(kGood, "rank 1", "rank 7")).substr(0, 26),
            "bad schedule word 'rank 7:");
  EXPECT_EQ(error_of(replaced(kGood, "=0,1", "=0:1,1")), "bad schedule word '0:1', s.txt:1");
  EXPECT_EQ(error_of(replaced(kGood, "V S", "R S")), "bad schedule word 'R', s.txt:2");
  EXPECT_EQ(error_of(replaced(kGood, "V S", "R0.1 S")), "bad schedule word 'R0.1', s.txt:2");
  EXPECT_EQ(error_of(""), "bad schedule word '', s.txt:1");
}

RC_GTEST_PROP(ScheduleText, ParsesBackExactly, ()) {
  const Schedule schedule = random_schedule(random_input());
  const auto parsed = parse_schedule(to_text(schedule), "s.txt");
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == schedule);
}

RC_GTEST_PROP(ScheduleText, SurvivesDamage, ()) {
  std::string text = kGood;
  text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  const auto parsed = parse_schedule(text, "s.txt");
  if (parsed.ok()) RC_ASSERT(*parse_schedule(to_text(*parsed), "s.txt") == *parsed);
}

}  // namespace
}  // namespace motley
