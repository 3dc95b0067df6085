// The supervisor's decisions over hours of simulated faults, one run a seed. A failure prints its
// seed; MOTLEY_SEED=N plays that one alone.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/cluster/played_network.h"

namespace motley {
namespace {

constexpr std::uint64_t kSeeds = 10'000;
constexpr double kRecovered_s = 60;  // after the end of the last fault
// An exclusion or a wait that the last fault caused may last for longer than the fault.
constexpr double kAllBack_s = 6 * 3600;

std::string text_of(const PlayedNetwork& network) {
  std::string text = "at least " + std::to_string(network.least()) + " machines";
  for (const PlayedFault& fault : network.faults()) {
    text += "; " + std::to_string(static_cast<int>(fault.kind)) + " of " + fault.machine + " " +
            std::to_string(fault.from_s) + " to " + std::to_string(fault.to_s);
  }
  return text;
}

void play(std::uint64_t seed) {
  const PlayedNetwork network(seed);
  SCOPED_TRACE("MOTLEY_SEED=" + std::to_string(seed) + ": " + text_of(network));
  PlayedRun run(network);
  run.play(PlayedNetwork::kFaultsEnd_s + kRecovered_s);
  for (const auto& [machine, at_s] : run.excluded()) {
    EXPECT_TRUE(network.has_killed_worker(machine, at_s)) << machine << " is blamed at " << at_s;
  }
  EXPECT_LE(run.launches(), 60) << "in half an hour";
  if (run.has_ended()) {
    EXPECT_TRUE(network.could_not_train_before(run.time_s())) << "it ended at " << run.time_s();
    return;
  }
  EXPECT_GE(run.stepped_at_s(), PlayedNetwork::kFaultsEnd_s) << "no step once the faults are over";
  run.play(kAllBack_s);
  ASSERT_FALSE(run.has_ended());
  EXPECT_TRUE(run.left_out().empty()) << run.left_out().front() << " is still left out";
}

TEST(SupervisorSimulation, GoesOnAndBlamesNoMachineAgainstTheEvidence) {
  if (const char* seed = std::getenv("MOTLEY_SEED")) return play(std::stoull(seed));
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) play(seed);
}

}  // namespace
}  // namespace motley
