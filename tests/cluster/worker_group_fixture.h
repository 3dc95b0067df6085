// Fixture for tests of WorkerGroup: add workers by script, run, inspect their events.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cluster/launch/worker_group.h"
#include "tests/support/process_state.h"

namespace motley {

class WorkerGroupFixture : public testing::Test {
 protected:
  WorkerGroupFixture() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              fmt::format("motley-{}-{}-{}", info->test_suite_name(), info->name(), ::getpid());
    std::filesystem::create_directories(folder_);
    options_.start_timeout_s = 20;
    options_.kill_grace_s = 0.2;
    options_.log_folder = folder_ / "log";
  }

  ~WorkerGroupFixture() override { std::filesystem::remove_all(folder_); }

  // Adds "stage N (test)". The script is a JSON list (tests/cluster/fake_worker.cc).
  WorkerSpec& add(const std::string& script, bool raw = false) {
    WorkerSpec spec;
    const auto rank = static_cast<std::int32_t>(specs_.size());
    spec.name = fmt::format("stage {} (test)", rank);
    spec.machine.name = "test";
    spec.program = MOTLEY_FAKE_WORKER;
    spec.job.verb = "train";
    spec.job.rank = Rank{rank};
    spec.job.options = {{"script", Json::parse(script)}};
    if (raw) spec.job.options["raw"] = true;
    specs_.push_back(std::move(spec));
    return specs_.back();
  }

  // A FIFO for a rendezvous of two scripts.
  std::string meeting_point() {
    const std::string path = (folder_ / fmt::format("fifo-{}", collective_checks_++)).string();
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  // Runs the group. Events are appended to events_ and passed to `handler`; the last of each
  // worker goes to done_.
  Result<void> run(const std::function<Result<void>(int, const Json&)>& handler = {}) {
    const Log log("test", LogLevel::kError);
    WorkerGroup group(specs_, options_, log);
    Result<void> outcome = group.run([&](int worker, const Json& event) -> Result<void> {
      const bool done = event["event"] == "done";
      (done ? done_ : events_).push_back({worker, event});
      if (done) return {};
      if (event.contains("pid")) pids_.push_back(event["pid"].get<pid_t>());
      if (handler) return handler(worker, event);
      return {};
    });
    for (const pid_t pid : pids_) EXPECT_TRUE(ends(pid)) << "process " << pid << " is left";
    return outcome;
  }

  // The error of a run that is expected to fail.
  Error run_failing() {
    const Result<void> outcome = run();
    EXPECT_FALSE(outcome.ok()) << "the run was expected to fail";
    return outcome.ok() ? Error{} : outcome.error();
  }

  [[nodiscard]] std::string log_of(int rank) const {
    std::ifstream file(folder_ / "log" / fmt::format("{}.log", rank));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  struct Event {
    int worker;
    Json event;
  };

  std::filesystem::path folder_;
  WorkerGroupOptions options_;
  std::vector<WorkerSpec> specs_;
  std::vector<Event> events_;
  std::vector<Event> done_;
  std::vector<pid_t> pids_;  // reported by workers
  int collective_checks_ = 0;
};

}  // namespace motley
