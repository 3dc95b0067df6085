#include "record/run_report.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "plan/cluster.h"
#include "record/report_text.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunReport example() {
  RunReport report;
  report.first_step = 1;
  report.measured_steps = 3;
  report.step_s = {0.4, 1};
  report.ranks = {
      {"stage 0 (desktop)", "desktop", "cpu", {0.3, 0.25}, 0.125, 0, {1000, 0}, {672, 160}},
      {"stage 1 (box)", "box", "cpu", {0.2, 0.5}, 0.25, 0, {500, 777}, {532, 160}}};
  report.links = {{0, "desktop", "box", "fp16", 320, 640}};
  report.end = {.last_step = 4};
  return report;
}

TEST(RunReport, SaysInWhichNumbersWhereTheyWereNotFp32) {
  RunReport report = example();
  EXPECT_THAT(report_text(report), Not(HasSubstr("products in")));
  report.ranks[1].compute_dtype = "bf16";
  const auto read = parse_report(report_to_json(report).dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->ranks[0].compute_dtype, "fp32");
  EXPECT_EQ(read->ranks[1].compute_dtype, "bf16");
  EXPECT_THAT(report_text(*read), testing::ContainsRegex("products in +bf16"));
}

TEST(RunReport, SaysThatTheMemoryOfADeviceIsNotMeasured) {
  RunReport report = example();
  report.ranks[0].device = "cuda:0";
  EXPECT_THAT(report_text(report), HasSubstr("not measured on devices"));
}

TEST(RunReport, ReadsBackAsItWasWritten) {
  const Json json = report_to_json(example());
  const auto copy = parse_report(json.dump(2), "report.json");
  ASSERT_TRUE(copy.ok()) << describe(copy.error());
  EXPECT_EQ(report_to_json(*copy).dump(), json.dump());
}

TEST(RunReport, GivesTheTerminalNoCommands) {
  Json json = report_to_json(example());
  json["ranks"][0]["name"] =
      "stage 0\x1b]0;owned\x07 \xc2\x9b"
      "1m \xe2\x80\xae (desktop)";
  const auto report = parse_report(json.dump(), "report.json");
  ASSERT_TRUE(report.ok()) << describe(report.error());
  EXPECT_EQ(report->ranks[0].name, "stage 0?]0;owned? ??1m ??? (desktop)");
}

struct Damage {
  const char* path;
  Json value;
};

TEST(RunReport, RefusesWhatIsDamaged) {
  for (const auto& [path, value] : std::vector<Damage>{
           {"/version", 99},
           {"/ranks", Json::array()},
           {"/ranks/0/compute_s", 3},
           {"/ranks/0/compute_s/measured", -1},
           {"/ranks/1/machine", "a b"},
           {"/links/0/payload_bytes", 1e300},
           {"/step_s/predicted", "fast"},
       }) {
    Json json = report_to_json(example());
    json[Json::json_pointer(path)] = value;
    const auto report = parse_report(json.dump(), "report.json");
    ASSERT_FALSE(report.ok()) << path;
    EXPECT_EQ(report.error().code, ErrorCode::kCorrupt) << path;
    EXPECT_THAT(report.error().what, HasSubstr("report.json:1:"));
  }
}

TEST(RunReport, WhoSendsNothingHasNoRowOfIt) {
  RunReport report = example();
  EXPECT_THAT(report_text(report), HasSubstr("sends a step"));
  for (RankReport& rank : report.ranks) rank.sent_bytes = {};
  EXPECT_THAT(report_text(report), Not(HasSubstr("sends a step")));
}

TEST(RunReport, ShowsHowFarThePredictionIsOff) {
  const std::string text = report_text(example());
  for (const char* part : {"steps 1 to 4", "stage 0 (desktop) computes", "+150.0 %", "fp16"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(RunReport, NamesTheClassesOfTheData) {
  RunReport report = example();
  EXPECT_THAT(report_text(report), Not(HasSubstr("classes")));
  report.class_names = {"cat", "dog\x1b"};
  const auto read = parse_report(report_to_json(report).dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->class_names, report.class_names);
  EXPECT_THAT(report_text(*read), HasSubstr("classes: 0 cat, 1 dog?\n"));
  report.class_names.assign(30, "x");
  EXPECT_THAT(report_text(report), HasSubstr(", 19 x, … 30 in all\n"));
}

TEST(RunReport, NamesTheWaitForSums) {
  RunReport report = example();
  EXPECT_THAT(report_text(report), Not(HasSubstr("for all-reduces")));
  report.ranks[1].wait_s = 0.375;
  report.ranks[1].allreduce_wait_s = 0.125;
  report.ranks[1].data_s = 0.25;
  const auto read = parse_report(report_to_json(report).dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->ranks[1].allreduce_wait_s, 0.125);
  EXPECT_EQ(read->ranks[1].data_s, 0.25);
  EXPECT_EQ(read->ranks[1].wait_s, 0.375);
  EXPECT_THAT(report_text(*read),
              testing::ContainsRegex("waits +375.00 ms\n +for all-reduces +125.00 ms"));
}

TEST(RunReport, SaysWhereDevicesWereVirtual) {
  RunReport report = example();
  for (RankReport& rank : report.ranks) rank.device = "virtual";
  EXPECT_THAT(report_text(report), HasSubstr(kVirtualNotice));
  EXPECT_THAT(report_text(report), HasSubstr(kSimulatedLinksNotice));
  EXPECT_THAT(report_text(example()), Not(HasSubstr("virtual")));
  EXPECT_THAT(report_text(example()), Not(HasSubstr("cluster file")));
}

TEST(RunReport, SaysWhatIsUnknown) {
  EXPECT_THAT(report_text(example()), HasSubstr("unknown"));
}

TEST(RunReport, SaysWhyTheRunEndedEarly) {
  RunReport report = example();
  EXPECT_FALSE(report_to_json(report).contains("ended"));
  EXPECT_THAT(report_text(report), Not(HasSubstr("ended")));
  report.end = RunEnd::by({ErrorCode::kPeer, "machine box was lost", "", ""}, 4);
  const Json json = report_to_json(report);
  EXPECT_EQ(json["last_step"], 4);
  EXPECT_EQ(json["ended"].dump(), R"({"status":4,"what":"machine box was lost"})");
  const auto read = parse_report(json.dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->end, report.end);
  EXPECT_THAT(report_text(*read), HasSubstr("ended early, with status 4: machine box was lost\n"));
}

TEST(RunReport, HoldsTheLastEvaluation) {
  RunReport report = example();
  EXPECT_FALSE(report_to_json(report).contains("evaluation"));
  report.evaluation = HeldOutResult{.step = 20, .loss = -0.25, .accuracy = 0.75};
  auto read = parse_report(report_to_json(report).dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->evaluation, report.evaluation);
  EXPECT_THAT(report_text(*read),
              HasSubstr("last evaluation, after step 20: held-out -0.250, 75.00 % correct\n"));
  report.evaluation->perplexity = 11;
  report.evaluation->top5_accuracy = 1;
  read = parse_report(report_to_json(report).dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->evaluation, report.evaluation);
  report.evaluation->loss = std::nan("");
  EXPECT_FALSE(report_to_json(report).contains("evaluation"));
}

TEST(RunReport, NamesTheBestStepAndWhyTheRunStopped) {
  RunReport report = example();
  EXPECT_FALSE(report_to_json(report).contains("best"));
  EXPECT_FALSE(report_to_json(report).contains("stopped_early"));
  report.best = BestEvaluation{20, 0.1 + 0.2};
  report.end.stopped_early = "3 evaluations in a row without a lower held-out loss";
  const auto read = parse_report(report_to_json(report).dump(), "report.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->best, report.best);
  EXPECT_EQ(read->end, report.end);
  EXPECT_THAT(report_text(*read), HasSubstr("best: held-out loss 0.3000 after step 20\n"));
  EXPECT_THAT(report_text(*read), HasSubstr("stopped early: 3 evaluations in a row"));
}

TEST(RunEnd, BoundsTheErrorsFirstLine) {
  const Error error{ErrorCode::kDiverged, std::string(1000, 'a'), "", ""};
  const RunEnd end = RunEnd::by(error, 7);
  EXPECT_EQ(end.last_step, 7);
  EXPECT_FALSE(end.has_completed());
  EXPECT_LE(end.what.size(), RunEnd::kWhatBytesMax + std::string("…").size());
  EXPECT_TRUE(RunEnd{.last_step = 7}.has_completed());
}

}  // namespace
}  // namespace motley
