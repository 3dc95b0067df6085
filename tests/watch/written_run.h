// A run's folder as a launcher writes it, for tests of viewers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "record/step_metrics.h"
#include "tests/plan/value_fixtures.h"

namespace motley {

class WrittenRun : public testing::Test {
 protected:
  WrittenRun() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(testing::TempDir()) / (std::string("motley-page-") + info->name());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    std::ofstream(dir_ / "config.toml")
        << "[train]\nsteps = 100000\n[data]\nkind = \"synthetic\"\n";
    std::ofstream(dir_ / "plan.json") << plan_text();
  }

  ~WrittenRun() override { std::filesystem::remove_all(dir_); }

  void add_steps(std::int64_t first, std::int64_t last) const {
    std::ofstream lines(dir_ / "metrics.jsonl", std::ios::app);
    for (std::int64_t step = first; step <= last; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      metrics.outcome.loss = 2 + 1 / static_cast<double>(step);
      metrics.outcome.tokens = 1000;
      metrics.step_s = 0.25;
      metrics.predicted_step_s = 0.3;
      metrics.wait_s = {0.05, 0.1};
      lines << metrics_to_json(metrics).dump() << '\n';
    }
  }

  std::filesystem::path dir_;
};

}  // namespace motley
