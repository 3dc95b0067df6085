// A run's folder as a launcher writes it, line by line, and the view of it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/lock/launch_record.h"
#include "tests/plan/value_fixtures.h"
#include "watch/view/run_view.h"

namespace motley {

inline constexpr double kNow_s = 1.8e9;

// A run's folder as a launcher writes it.
class RunViewTest : public testing::Test {
 protected:
  RunViewTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(testing::TempDir()) / (std::string("motley-view-") + info->name());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }

  ~RunViewTest() override { std::filesystem::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_file_atomic(dir_ / name, text).ok());
  }

  void add(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::app) << text;
  }

  void add_steps(std::int64_t first, std::int64_t last, double loss = 2) const {
    for (std::int64_t step = first; step <= last; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      metrics.outcome.loss = loss;
      metrics.outcome.tokens = 1000;
      metrics.step_s = 0.25;
      metrics.predicted_step_s = 0.3;
      metrics.wait_s = {0.05, 0.1};
      add("metrics.jsonl", metrics_to_json(metrics).dump() + "\n");
    }
  }

  void write_run() const {
    write("config.toml", "[train]\nsteps = 100\n[data]\nkind = \"synthetic\"\n");
    write("plan.json", plan_text());
    add_steps(1, 10);
  }

  void happens(RunEventKind kind, std::int64_t step, const std::string& text = "it was so") const {
    add("events.jsonl", run_event_to_json({kNow_s, step, kind, text, ""}).dump() + "\n");
  }

  // Records a launcher that is running: this process.
  void begin_launch() const {
    std::filesystem::create_directories(launches_folder(dir_));
    const LaunchRecord record{
        .number = 1, .launch = "1", .process = this_process(), .since = "now"};
    write(launch_file(dir_, 1).lexically_relative(dir_).string(), launch_record_text(record));
    happens(RunEventKind::kStarted, 0);
  }

  static std::string health_text(const RunView& view) { return view.health().text; }

  [[nodiscard]] RunView open() const {
    Result<RunView> view = RunView::open(dir_, kNow_s);
    EXPECT_TRUE(view.ok());
    return *std::move(view);
  }

  std::filesystem::path dir_;
};

}  // namespace motley
