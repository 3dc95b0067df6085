// What must be found of recorded saves after a cut of the power at any point.
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
  std::size_t cuts = 0;    // places in a log
  std::size_t states = 0;  // different ones, each with what was promised
  std::size_t restarts = 0;
  std::vector<std::string> faults;
};

// Looks at states that cuts may leave: at each place of a log those that keep all, nothing, only
// names or only bytes of what was not synced; where little was not synced, every combination; and
// some at random.
class CutCheck {
 public:
  // `random_states`: at each place. Every `restart_every`th state that differs from those before is
  // gone on from: a launch must be able to save and to prune there, and to leave nothing else.
  CutCheck(int random_states, std::size_t restart_every)
      : random_states_(random_states), restart_every_(restart_every) {}

  // The recorded folder is the run's. Stops at the eighth fault.
  void run(const DiskTree& before, const std::vector<DiskOperation>& log, Promises promises);

  [[nodiscard]] const CutTally& tally() const { return tally_; }

  // States that were found, some of them, with what was promised in each.
  [[nodiscard]] const std::vector<std::pair<DiskTree, Promises>>& kept_states() const {
    return kept_;
  }

 private:
  void look_at(const DiskModel& model, const Promises& promises, std::size_t place);
  void look_at(const DiskTree& tree,
               const Promises& promises,
               std::size_t place,
               const std::string& cut);
  [[nodiscard]] std::string restart_fault();

  int random_states_;
  std::size_t restart_every_;
  CutTally tally_;
  std::unordered_set<std::size_t> seen_;
  std::vector<std::pair<DiskTree, Promises>> kept_;
  DiskCopy disk_;
};

}  // namespace motley::testing
