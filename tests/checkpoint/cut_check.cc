#include "tests/checkpoint/cut_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

namespace motley::testing {
namespace {

constexpr std::size_t kFaultsMax = 8;
constexpr std::size_t kSampleEvery = 97;  // states

}  // namespace

void CutCheck::run(const DiskTree& before,
                   const std::vector<DiskOperation>& log,
                   Promises promises) {
  DiskModel model(before);
  look_at(model, promises, 0);
  for (std::size_t i = 0; i < log.size() && tally_.faults.size() < kFaultsMax; ++i) {
    if (log[i].action == DiskAction::kMark) promises.hear(log[i].other);
    model.apply(log[i]);
    look_at(model, promises, i + 1);
  }
}

void CutCheck::look_at(const DiskModel& model, const Promises& promises, std::size_t position) {
  ++tally_.cuts;
  try_cuts(position, {.random = random_states_}, [&](Cut& cut, const std::string& words) {
    look_at(model.after(cut), promises, position, words);
  });
}

void CutCheck::look_at(const DiskTree& tree,
                       const Promises& promises,
                       std::size_t position,
                       const std::string& cut) {
  if (tally_.faults.size() >= kFaultsMax) return;
  if (!seen_.insert(fingerprint(tree, promises.text())).second) return;
  ++tally_.states;
  disk_.show(tree);
  std::string fault = promises.broken_by(disk_.path());
  if (fault.empty() && tally_.states % kSampleEvery == 0) samples_.emplace_back(tree, promises);
  if (fault.empty() && restart_every_ > 0 && tally_.states % restart_every_ == 0) {
    fault = restart_fault();
  }
  if (!fault.empty()) {
    tally_.faults.push_back(
        fmt::format("after operation {}, {}: {} ({})", position, cut, fault, promises.text()));
  }
}

std::string CutCheck::restart_fault() {
  ++tally_.restarts;
  // A replaced checkpoint may remain as that of its step.
  std::vector<std::string> expected;
  std::int64_t newest = 0;
  for (const CheckpointInfo& info : list_checkpoints(disk_.path())) {
    expected = {info.folder.filename().string()};
    newest = info.step;
  }
  expected.push_back(fmt::format("step-{:06}", newest + 10));

  const SavingLaunch launch(disk_.path(), "000009-0123456789abcdef", 2);
  std::string fault = fault_of(launch.save(newest + 10, 99));
  if (fault.empty()) fault = fault_of(launch.prune());
  const std::vector<std::string> found = names_in(disk_.path() / "checkpoints");
  if (fault.empty() && found != expected) {
    fault = fmt::format("a launch after the cut leaves {} in place of {}", found, expected);
  }
  disk_.forget();
  return fault;
}

}  // namespace motley::testing
