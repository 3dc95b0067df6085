#include "watch/view/run_view.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "plan/rank_names.h"
#include "record/trace_file.h"
#include "tests/watch/viewed_folder.h"

namespace motley {
namespace {

using testing::HasSubstr;

TEST_F(RunViewTest, RefusesWhatIsNoRun) {
  const auto empty = RunView::open(dir_, kNow_s);
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code, ErrorCode::kConfig);
  EXPECT_FALSE(RunView::open(dir_ / "none", kNow_s).ok());
}

TEST_F(RunViewTest, DescribesThePlan) {
  write_run();
  const Json shown = open().description();
  EXPECT_EQ(shown["run"]["steps"], 100);
  EXPECT_EQ(shown["run"]["state"], "silent");
  EXPECT_EQ(shown["machines"][0]["name"], "fast");
  EXPECT_EQ(shown["ranks"][1]["machine"], "slow");
  EXPECT_EQ(shown["ranks"][1]["device"], "cuda:0");
  EXPECT_EQ(shown["ranks"][0]["first_layer"], 0);
  EXPECT_EQ(shown["ranks"][1]["first_layer"], 3);
  EXPECT_EQ(shown["ranks"][1]["last_layer"], 4);
  EXPECT_EQ(shown["ranks"][1]["predicted"]["compute_s"], 0.25);
  EXPECT_TRUE(shown["ranks"][1]["predicted"]["sent_bytes"].is_null());
  EXPECT_EQ(shown["links"][0]["from_machine"], "fast");
  EXPECT_EQ(shown["plan"]["schedule"], "1f1b");
  EXPECT_EQ(shown["plan"]["micro_batches"], 8);
}

TEST_F(RunViewTest, TellsTheStateOfTheNewestSteps) {
  write_run();
  const Json state = open().state();
  EXPECT_EQ(state["step"], 10);
  EXPECT_EQ(state["steps"], 100);
  EXPECT_EQ(state["loss"], 2);
  EXPECT_TRUE(state["eval"].is_null());
  EXPECT_EQ(state["step_s"], 0.25);
  EXPECT_EQ(state["predicted_step_s"], 0.3);
  EXPECT_EQ(state["tokens_per_s"], 4000);
  EXPECT_TRUE(state["eta_s"].is_null());  // not training
  EXPECT_EQ(state["verdict"]["level"], "bad");
  EXPECT_EQ(state["ranks"][1]["wait_s"]["other"], 0.1);
  EXPECT_EQ(state["ranks"][1]["compute_s"], 0.25 - 0.1);  // without waiting
  EXPECT_TRUE(state["ranks"][1]["codec_s"].is_null());
}

TEST_F(RunViewTest, FollowsWhatIsAdded) {
  write_run();
  RunView view = open();
  EXPECT_FALSE(view.poll(kNow_s).state);
  add_steps(11, 12);
  add("metrics.jsonl", "{\"step\":13,");  // incomplete
  const auto changes = view.poll(kNow_s + 1);
  EXPECT_EQ(changes.steps, 2);
  EXPECT_TRUE(changes.state);
  EXPECT_FALSE(changes.begins_anew);
  EXPECT_EQ(view.last_step(), 12);
  EXPECT_EQ(view.history(100, 10)["step"].dump(), "[11,12]");
}

TEST_F(RunViewTest, GoesBackWithAResumedRun) {
  write_run();
  RunView view = open();
  std::filesystem::remove(dir_ / "metrics.jsonl");
  add_steps(1, 6, 2);
  add_steps(7, 8, 5);
  EXPECT_TRUE(view.poll(kNow_s + 1).begins_anew);
  EXPECT_EQ(view.last_step(), 8);
  EXPECT_EQ(view.state()["loss"], 5);
  EXPECT_EQ(view.history(100)["step"].size(), 8U);
}

TEST_F(RunViewTest, TakesAPlanThatWasReplaced) {
  write_run();
  RunView view = open();
  Plan plan = two_stages();
  plan.ranks[0].machine = "third";
  write("plan.json", plan_to_json(plan).dump());
  EXPECT_TRUE(view.poll(kNow_s).description);
  EXPECT_EQ(view.description()["ranks"][0]["machine"], "third");
  write("plan.json", "{\"half\":");
  EXPECT_TRUE(view.poll(kNow_s).description);
  EXPECT_TRUE(view.description()["plan"].is_null());
}

TEST_F(RunViewTest, NamesTheRunsInside) {
  std::filesystem::create_directories(dir_ / "second");
  std::filesystem::create_directories(dir_ / "first");
  std::filesystem::create_directories(dir_ / "other");
  write("first/config.toml", "");
  write("second/metrics.jsonl", "");
  const auto inside = RunView::open(dir_, kNow_s);
  ASSERT_FALSE(inside.ok());
  EXPECT_EQ(inside.error().remedy, "give one of the runs in it: " + (dir_ / "first").string() +
                                       ", " + (dir_ / "second").string());
  const auto file = RunView::open(dir_ / "first/config.toml", kNow_s);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().cause, "it is a file, not a folder");
}

TEST_F(RunViewTest, SaysThatItsFolderIsGone) {
  write_run();
  RunView view = open();
  const std::filesystem::path away = dir_.string() + "-away";
  std::filesystem::remove_all(away);
  std::filesystem::rename(dir_, away);
  EXPECT_TRUE(view.poll(kNow_s + 1).description);
  EXPECT_EQ(view.readable().error().cause, "no such folder");
  EXPECT_EQ(view.description()["run"]["state"], "silent");
  EXPECT_THAT(view.state()["verdict"]["text"].get<std::string>(), HasSubstr("no such folder"));
  std::filesystem::rename(away, dir_);
  EXPECT_TRUE(view.poll(kNow_s + 2).description);
  EXPECT_TRUE(view.readable().ok());
  EXPECT_EQ(view.last_step(), 10);
}

TEST_F(RunViewTest, ASimulatedRunIsMarkedWhereverFiguresAre) {
  write_run();
  EXPECT_EQ(open().state()["virtual"], false);
  Plan plan = two_stages();
  for (RankPlan& rank : plan.ranks) rank.device = "virtual";
  write("plan.json", plan_to_json(plan).dump());
  const RunView view = open();
  EXPECT_EQ(view.state()["virtual"], true);
  EXPECT_EQ(view.description()["run"]["virtual"], true);
}

// The time between the last step before a launch and the launch's first step is neither computing
// nor saving.
TEST_F(RunViewTest, APauseBetweenTwoLaunchesIsNoSaving) {
  write_run();
  const auto add_step = [&](std::int64_t step, double time_s) {
    StepMetrics metrics;
    metrics.step = step;
    metrics.outcome.loss = 2;
    metrics.step_s = 1;
    metrics.wait_s = {0, 0};
    metrics.time_s = time_s;
    add("metrics.jsonl", metrics_to_json(metrics).dump() + "\n");
  };
  const auto add_event = [&](std::int64_t step, RunEventKind kind, double time_s) {
    add("events.jsonl", run_event_to_json({time_s, step, kind, "it was so", ""}).dump() + "\n");
  };
  double at_s = kNow_s - 1000;
  for (std::int64_t step = 11; step <= 40; ++step) {
    add_step(step, at_s += 1);
    if (step % 10 != 0) continue;
    add_event(step, RunEventKind::kCheckpoint, at_s + 0.5);
    add_event(step, RunEventKind::kResumed, at_s + 50);
    at_s += 60;
  }
  const std::vector<StepInterval> intervals = open().recent().intervals();
  EXPECT_EQ(intervals.size(), 27U);
  for (const StepInterval& interval : intervals) EXPECT_EQ(interval.taken_s, 1);
}

TEST_F(RunViewTest, TellsHowTheRunEnded) {
  write_run();
  RunReport report;
  report.end.last_step = 10;
  report.ranks = {{"stage 0 (fast)", "fast", "cpu", {}, 0, {}, {}}};
  write("report.json", report_to_json(report).dump());
  RunView view = open();
  EXPECT_EQ(view.description()["run"]["state"], "ended");
  EXPECT_EQ(view.description()["run"]["status"], 0);
  EXPECT_EQ(view.state()["verdict"]["level"], "good");
  EXPECT_EQ(view.state()["verdict"]["text"], "ended: step 10 of 100 completed");
  EXPECT_TRUE(view.state()["verdict"]["advice"].is_null());
  report.end.status = 4;
  report.end.what = "machine slow was lost";
  write("report.json", report_to_json(report).dump());
  EXPECT_TRUE(view.poll(kNow_s).description);
  EXPECT_EQ(view.description()["run"]["state"], "failed");
  EXPECT_THAT(view.state()["verdict"]["text"].get<std::string>(), HasSubstr("slow was lost"));
}

TEST_F(RunViewTest, BetweenTwoLaunchesItIsRestarting) {
  write_run();
  RunReport report;
  report.end.last_step = 10;
  report.ranks = {{"stage 0 (fast)", "fast", "cpu", {}, 0, {}, {}}};
  report.end.status = 4;
  report.end.what = "machine slow was lost";
  write("report.json", report_to_json(report).dump());
  const RunEvent lost{kNow_s - 1, 10, RunEventKind::kLost, "slow was lost; it goes on", "slow"};
  add("events.jsonl", run_event_to_json(lost).dump() + "\n");
  RunView view = open();
  EXPECT_TRUE(view.is_under_way());
  EXPECT_EQ(view.description()["run"]["state"], "restarting");
  EXPECT_EQ(view.state()["verdict"]["level"], "watch");
  EXPECT_THAT(view.state()["verdict"]["text"].get<std::string>(), HasSubstr("it goes on"));
  EXPECT_TRUE(view.state()["eta_s"].is_null());
  // No launcher has returned within the gap, so the run has failed.
  EXPECT_TRUE(view.poll(kNow_s + kGap_s).description);
  EXPECT_EQ(view.description()["run"]["state"], "failed");
}

TEST_F(RunViewTest, KeepsTheNewestEvents) {
  write_run();
  for (int i = 1; i <= 5; ++i) {
    const RunEvent event{kNow_s, i, RunEventKind::kWarning, "warning " + std::to_string(i), ""};
    add("events.jsonl", run_event_to_json(event).dump() + "\n");
  }
  add("events.jsonl", "nonsense\n{\"kind\":\"unheard\"}\n");
  const Json events = open().events(2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["text"], "warning 4");
  EXPECT_EQ(events[1]["text"], "warning 5");
  EXPECT_EQ(events[1]["kind"], "warning");
}

TEST_F(RunViewTest, ShowsTheLastStepThatWasTraced) {
  write_run();
  RunView view = open();
  EXPECT_TRUE(view.timeline()["measured"].is_null());
  EXPECT_FALSE(view.poll(kNow_s).timeline);
  const std::vector<TraceSpan> spans = {{Rank{1}, "compute", "F1.0", 0.5, 0.1, 3}};
  const auto plan = read_plan(dir_ / "plan.json");
  ASSERT_TRUE(plan.ok());
  std::vector<std::string> names = rank_names(*plan);
  write("trace.json", trace_text(spans, names));
  EXPECT_TRUE(view.poll(kNow_s).timeline);
  const Json measured = view.timeline()["measured"];
  EXPECT_EQ(measured["step"], 3);
  EXPECT_EQ(measured["spans"][0]["name"], "F1.0");
  EXPECT_EQ(measured["spans"][0]["rank"], 1);
  EXPECT_TRUE(view.timeline()["simulated"].is_null());
  names.back() = "of a plan before";
  write("trace.json", trace_text(spans, names));
  EXPECT_TRUE(view.poll(kNow_s).timeline);
  EXPECT_TRUE(view.timeline()["measured"].is_null());
}

// A hole of zeros represents the lines of a run of several weeks.
TEST_F(RunViewTest, ReadsAllThatIsThereHoweverMuch) {
  write_run();
  const auto begun = std::filesystem::file_size(dir_ / "metrics.jsonl");
  std::filesystem::resize_file(dir_ / "metrics.jsonl", begun + (std::uintmax_t{300} << 20));
  add("metrics.jsonl", "\n");
  add_steps(11, 12);
  EXPECT_EQ(open().state()["step"], 12);
}

TEST_F(RunViewTest, ReadsALotInPiecesAndSaysHowFarItIs) {
  write_run();
  RunView view = open();
  EXPECT_TRUE(view.state()["reading"].is_null());
  const auto begun = std::filesystem::file_size(dir_ / "metrics.jsonl");
  std::filesystem::resize_file(dir_ / "metrics.jsonl", begun + (std::uintmax_t{100} << 20));
  add("metrics.jsonl", "\n");
  add_steps(11, 12);
  auto changes = view.poll(kNow_s);
  EXPECT_TRUE(changes.has_more);
  EXPECT_TRUE(changes.state);
  Json state = view.state();
  EXPECT_EQ(state["step"], 10);
  EXPECT_LE(state["reading"]["read_bytes"], 10 << 20);
  EXPECT_GT(state["reading"]["bytes"], 100 << 20);
  EXPECT_EQ(state["verdict"]["text"], "reading the run: 1 % of 100.0 MiB");
  EXPECT_EQ(state["verdict"]["level"], "good");
  while (changes.has_more) changes = view.poll(kNow_s);
  EXPECT_TRUE(changes.state);
  state = view.state();
  EXPECT_EQ(state["step"], 12);
  EXPECT_TRUE(state["reading"].is_null());
}

// Data that arrived between two polls counts as new, however long its lines are.
TEST_F(RunViewTest, AFewPiecesThatCameAreNoLongRead) {
  write_run();
  RunView view = open();
  add("metrics.jsonl", std::string(3 << 20, ' ') + "\n");
  EXPECT_TRUE(view.poll(kNow_s).has_more);
  EXPECT_TRUE(view.state()["reading"].is_null());
}

TEST_F(RunViewTest, LeavesOutLinesThatCannotBeRead) {
  write_run();
  add("metrics.jsonl", "\n{}\n[]\n{\"step\":-1}\n{\"step\":11,\"loss\":\"low\"}\n\xff\xfe\n");
  add_steps(11, 11);
  RunView view = open();
  EXPECT_EQ(view.last_step(), 11);
  EXPECT_EQ(view.history(100)["step"].size(), 11U);
}

}  // namespace
}  // namespace motley
