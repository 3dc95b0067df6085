// A run's metrics for monitoring programs, with the names that docs/formats/watch.md lists.
#include "watch/metrics/run_metrics.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/system/files.h"
#include "base/system/version.h"
#include "record/run_event.h"
#include "tests/support/command_output.h"
#include "tests/watch/written_run.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunMetricsTest : public WrittenRun {
 protected:
  // Adds steps with all fields.
  void add_reported_steps(std::int64_t first, std::int64_t last) const {
    std::ofstream lines(dir_ / "metrics.jsonl", std::ios::app);
    for (std::int64_t step = first; step <= last; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      metrics.outcome.loss = 2.5;
      metrics.outcome.tokens = 1000;
      metrics.step_s = 0.25;
      metrics.predicted_step_s = 0.3;
      metrics.outcome.lr = 0.001;
      metrics.outcome.grad_norm = 0.5;
      metrics.wire_bytes = 3000;
      metrics.bubble = 0.125;
      metrics.losses = {0.05, 0.075, 0.01, 0.004};
      metrics.wait_s = {0.05, 0.1};
      metrics.time_s = 1.75e9 + static_cast<double>(step);
      metrics.ranks.resize(2);
      for (auto& rank : metrics.ranks) {
        rank.times.compute_s = 0.2;
        rank.times.codec_s = 0.01;
        rank.times.optimizer_s = 0.005;
        rank.memory_bytes = 1 << 20;
      }
      metrics.ranks[0].times.wait_s.of(WaitCause::kGradient) = 0.05;
      metrics.ranks[1].times.wait_s.of(WaitCause::kActivation) = 0.1;
      metrics.links = {{Rank{0}, Rank{1}, 2000}, {Rank{1}, Rank{0}, 1000}};
      if (step == 2) metrics.eval_loss = 2.75;
      lines << metrics_to_json(metrics).dump() << '\n';
    }
  }

  void add_event(const RunEvent& event) const {
    std::ofstream(dir_ / "events.jsonl", std::ios::app) << run_event_to_json(event).dump() << '\n';
  }

  [[nodiscard]] std::vector<MetricFamily> metrics() const {
    const auto view = RunView::open(dir_, 1.8e9);
    EXPECT_TRUE(view.ok());
    return run_metrics(*view);
  }
};

TEST_F(RunMetricsTest, TellsARun) {
  add_reported_steps(1, 4);
  add_event({1.75e9 + 4, 4, RunEventKind::kCheckpoint, "saved", ""});
  std::string text = openmetrics_text(metrics());
  // Values that depend on the build or the test are placeholders in the golden text.
  for (const auto& [what, word] :
       {std::pair(motley_version(), "VERSION"), {dir_.filename().string(), "RUN"}}) {
    const std::size_t at = text.find('"' + what + '"');
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at + 1, what.size(), word);
  }
  const auto golden = read_file(MOTLEY_SOURCE_DIR "/tests/watch/golden/run_metrics.txt");
  ASSERT_TRUE(golden.ok());
  EXPECT_EQ(text, *golden);
}

TEST_F(RunMetricsTest, TellsWhatTheLastEvaluationPredicted) {
  add_reported_steps(1, 4);
  EXPECT_THAT(openmetrics_text(metrics()), Not(HasSubstr("motley_eval_accuracy")));
  StepMetrics evaluated;
  evaluated.step = 5;
  evaluated.eval_loss = 2.5;
  evaluated.eval_perplexity = 12.25;
  evaluated.eval_accuracy = 0.5;
  evaluated.eval_top5_accuracy = 0.875;
  std::ofstream(dir_ / "metrics.jsonl", std::ios::app) << metrics_to_json(evaluated).dump() << '\n';
  const std::string text = openmetrics_text(metrics());
  EXPECT_THAT(text, HasSubstr("motley_eval_perplexity 12.25\n"));
  EXPECT_THAT(text, HasSubstr("motley_eval_accuracy 0.5\n"));
  EXPECT_THAT(text, HasSubstr("motley_eval_top5_accuracy 0.875\n"));
  const Json eval = RunView::open(dir_, 1.8e9)->state()["eval"];
  EXPECT_EQ(
      eval,
      (Json{{"loss", 2.5}, {"perplexity", 12.25}, {"accuracy", 0.5}, {"top5_accuracy", 0.875}}));
}

TEST_F(RunMetricsTest, ARunWithoutAStepSaysWhatItIs) {
  const std::string text = openmetrics_text(metrics());
  EXPECT_THAT(text, HasSubstr("motley_run_last_step 0\n"));
  EXPECT_THAT(text, HasSubstr("motley_rank_info{rank=\"1\","));
  EXPECT_THAT(text, HasSubstr("motley_step_seconds_count 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("motley_loss")));
  EXPECT_THAT(text, Not(HasSubstr("NaN")));
}

// Totals that grow while the files are read would look like new steps.
TEST_F(RunMetricsTest, ARunThatIsBeingReadTellsNoSums) {
  add_reported_steps(1, 3);
  std::filesystem::resize_file(dir_ / "metrics.jsonl", std::uintmax_t{64} << 30);
  const auto view = RunView::begin(dir_, 1.8e9);
  ASSERT_TRUE(view.ok());
  const std::string text = openmetrics_text(run_metrics(*view));
  EXPECT_THAT(text, HasSubstr("motley_run_read_ratio 0."));
  EXPECT_THAT(text, HasSubstr("motley_run_info{"));
  EXPECT_THAT(text, Not(HasSubstr("motley_tokens")));
  EXPECT_THAT(text, Not(HasSubstr("motley_loss")));
}

TEST_F(RunMetricsTest, NamesItsUnitsAndNoMoreSeriesForMoreSteps) {
  add_reported_steps(1, 3);
  std::size_t series = 0;
  std::set<std::string> names;
  for (const MetricFamily& family : metrics()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(family.name.starts_with("motley_")) << family.name;
    EXPECT_TRUE(family.unit.empty() || family.name.ends_with("_" + family.unit)) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_FALSE(family.samples.empty()) << family.name;
    series += family.samples.size();
  }
  add_reported_steps(4, 300);
  std::size_t later = 0;
  for (const MetricFamily& family : metrics()) later += family.samples.size();
  EXPECT_EQ(later, series);
}

// With the Prometheus project's OpenMetrics parser.
TEST_F(RunMetricsTest, IsReadByAnotherReader) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "needs python3";
  add_reported_steps(1, 4);
  add_event({1.75e9, 4, RunEventKind::kWarning, "slow", ""});
  const std::vector<MetricFamily> families = metrics();
  const std::filesystem::path file = dir_ / "metrics.txt";
  ASSERT_TRUE(write_file_atomic(file, openmetrics_text(families)).ok());
  const std::string command = "/usr/bin/python3 " MOTLEY_SOURCE_DIR
                              "/tests/watch/read_openmetrics.py < '" +
                              file.string() + "' 2>&1";
  const auto [status, out] = output_of(command);
  constexpr int kSkipped = 77;
  if (status == kSkipped) GTEST_SKIP() << out;
  EXPECT_EQ(status, 0) << out;
  for (const MetricFamily& family : families) {
    EXPECT_THAT(out, HasSubstr(family.name + " ")) << family.name;
  }
  EXPECT_THAT(out, HasSubstr("motley_run_state stateset 5\n"));
  EXPECT_THAT(out, HasSubstr("motley_link_sent_bytes counter 2\n"));
}

}  // namespace
}  // namespace motley
