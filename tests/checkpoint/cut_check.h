// Checks of the state after a power cut at any point of recorded saves.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/checkpoint/disk_copy.h"
#include "tests/checkpoint/saving_launch.h"
#include "tests/support/disk_model.h"

namespace motley::testing {

struct CutTally {
  std::size_t cuts = 0;    // positions in a log
  std::size_t states = 0;  // distinct ones, each with the promises at that point
  std::size_t restarts = 0;
  std::vector<std::string> faults;
};

// Checks the states that power cuts may leave. At each position of a log: four fixed ones, in
// which all, nothing, only names or only bytes of the unsynced state survive; every combination if
// little is unsynced; and some random ones.
class CutCheck {
 public:
  // `random_states`: per position. After every `restart_every`th distinct state the run continues:
  // a launch must be able to save and to prune, and leave nothing else.
  CutCheck(int random_states, std::size_t restart_every)
      : random_states_(random_states), restart_every_(restart_every) {}

  // The recorded folder is the run folder. Stops at the eighth fault.
  void run(const DiskTree& before, const std::vector<DiskOperation>& log, Promises promises);

  [[nodiscard]] const CutTally& tally() const { return tally_; }

  // A sample of the distinct states, each with the promises at that point.
  [[nodiscard]] const std::vector<std::pair<DiskTree, Promises>>& sampled_states() const {
    return samples_;
  }

 private:
  void look_at(const DiskModel& model, const Promises& promises, std::size_t position);
  void look_at(const DiskTree& tree,
               const Promises& promises,
               std::size_t position,
               const std::string& cut);
  [[nodiscard]] std::string restart_fault();

  int random_states_;
  std::size_t restart_every_;
  CutTally tally_;
  std::unordered_set<std::size_t> seen_;
  std::vector<std::pair<DiskTree, Promises>> samples_;
  DiskCopy disk_;
};

}  // namespace motley::testing
