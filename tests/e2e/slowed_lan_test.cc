// A machine of scripts/lan that becomes half as fast while a run is under way: the output tells it
// by name. Skipped without root, network namespaces and control groups, and where a LAN is up.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/lan_machines.h"
#include "e2e/motley_command.h"

namespace motley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kStepsBefore = 12;  // what the first ones take is what later ones are compared with
constexpr int kStepsAfter = 20;   // within so many it must be told
constexpr int kSteps = kStepsBefore + kStepsAfter + 5;

// Steps of a few hundred ms on such machines, many times the pauses by which they are made slow:
// who computes less than a few of those at a time is slowed by more or less than its share, as
// chance has it.
constexpr const char* kJob = R"(
[model]
kind = "gpt2"
layers = 4
width = 256
heads = 4
context = 64
vocab = 256
[data]
kind = "synthetic"
[train]
steps = {}
global_batch = 16
micro_batch = 4
warmup_steps = 5
[checkpoint]
every = 0
)";

std::int64_t steps_in(const std::filesystem::path& run) {
  return std::ranges::count(read_text(run / "metrics.jsonl"), '\n');
}

TEST(SlowedMachine, IsNamedWithinTwentySteps) {
  const LanMachines machines("--mbps 1000 --cpu 0.5,0.5");
  if (!machines.are_up()) GTEST_SKIP() << "needs root and a LAN of its own (scripts/lan)";
  const TemporaryFolder folder;
  const auto run_dir = folder / "run";
  RunningMotley run({"launch", folder.write("job.toml", fmt::format(kJob, kSteps)), "--run",
                     run_dir.string(), "--cluster",
                     folder.write("cluster.toml", LanMachines::cluster_text(true)), "--pin",
                     "always m1", "--pin", "always m2"});
  ASSERT_TRUE(eventually([&] { return steps_in(run_dir) >= kStepsBefore; })) << run.wait().err;
  const std::int64_t slowed_at = steps_in(run_dir);
  lan("cpu m2 0.25");
  const Outcome outcome = run.wait();
  ASSERT_EQ(outcome.status, 0) << outcome.err;

  const std::string output = outcome.out + outcome.err;
  const auto at = output.find("(m2): ");
  ASSERT_NE(at, std::string::npos) << output;
  const std::string line = output.substr(at, output.find('\n', at) - at);
  const auto step_at = line.find("(step ");
  ASSERT_NE(step_at, std::string::npos) << line;
  EXPECT_THAT(line, HasSubstr(" times slower than at the start"));
  const int step = std::stoi(line.substr(step_at + 6));
  std::printf("slowed after step %d: %s\n", static_cast<int>(slowed_at), line.c_str());
  EXPECT_GT(step, slowed_at);
  EXPECT_LE(step, slowed_at + kStepsAfter);
  EXPECT_THAT(output, Not(HasSubstr("(m1): ")));
}

}  // namespace
}  // namespace motley::test
