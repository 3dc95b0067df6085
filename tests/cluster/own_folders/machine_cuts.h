// Checks of a run over several machines after a power cut at any point of its record: on one
// machine, on all at once, and on all with one machine lost permanently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/checkpoint/disk_copy.h"
#include "tests/cluster/own_folders/reported_saves.h"

namespace motley::testing {

struct MachineCutTally {
  std::size_t cuts = 0;    // positions in a record
  std::size_t states = 0;  // distinct ones, each with the reports up to that point
  std::size_t restarts = 0;
  std::vector<std::string> faults;
};

// Which positions and states are checked, and from which of them a launch continues.
struct MachineCutOptions {
  CutKinds kinds;                 // tried at each position
  std::size_t place_every = 1;    // checks one of this many positions, and each report
  std::size_t restart_every = 0;  // a launch continues from one of this many states; 0 = none
  std::size_t keep_every = 0;     // retains one of this many; 0 = none
  std::size_t faults_max = 8;     // ends the search
};

class MachineCuts {
 public:
  MachineCuts(Layout layout, SavedFiles& saved, MachineCutOptions options);

  // The recorded folder contains one folder per machine, with its name. Stops after `faults_max`
  // faults.
  void run(const DiskTrees& before, const std::vector<DiskOperation>& log, ReportedSaves reported);

  [[nodiscard]] const MachineCutTally& tally() const { return tally_; }

  struct SampledState {
    DiskTrees trees;
    ReportedSaves reported;
  };

  // A sample of the states, each with the promises to a launch that continues there.
  [[nodiscard]] const std::vector<SampledState>& sampled_states() const { return samples_; }

 private:
  // The state of a disk, and its hash.
  struct Disk {
    DiskTree tree;
    std::size_t print = 0;
  };

  using Disks = std::map<std::string, Disk>;  // by machine

  [[nodiscard]] static Disk disk_of(DiskTree tree);
  [[nodiscard]] static Disk as_it_is(const DiskModel& model);

  // `changed`: the machine whose disk the last operation was on; "": the last entry was a marker.
  void look_at(const std::map<std::string, DiskModel>& models,
               const Disks& now,
               const std::string& changed,
               const ReportedSaves& reported,
               std::size_t position);
  // `lost`: the machine that is lost permanently; "" = none.
  void look_at(const Disks& disks,
               const std::string& lost,
               const ReportedSaves& reported,
               const std::string& words);
  // Whether this state has not been checked before.
  [[nodiscard]] bool is_new(const Disks& disks,
                            const std::string& lost,
                            const ReportedSaves& reported);
  void show(const DiskTrees& trees);

  // The restore point of a launch, or the fault found in it.
  struct Resume {
    std::string fault;
    bool is_possible = true;  // from a checkpoint, or from the start
    std::int64_t step = 0;
    std::optional<int> version;  // of the checkpoint, if any
  };

  [[nodiscard]] Resume look_for_resume(const DiskTrees& trees,
                                       bool lost,
                                       const ReportedSaves& reported);
  // Runs the launch on the disks, and checks the resulting state.
  [[nodiscard]] Result<void> go_on(const std::optional<int>& version);
  [[nodiscard]] Result<void> check_what_is_left(std::int64_t last_step) const;

  const Layout layout_;
  SavedFiles& saved_;
  const MachineCutOptions options_;
  MachineCutTally tally_;
  std::unordered_set<std::size_t> seen_;
  std::vector<SampledState> samples_;
  std::map<std::string, DiskCopy> shown_;  // by machine
  const PlayedMachines machines_;          // in the folders of shown_
};

// The machine of a path in the recorded folder ("" for a marker), and the operation relative to
// that machine's disk.
[[nodiscard]] std::string machine_of(const std::string& path);
[[nodiscard]] DiskOperation within_machine(DiskOperation operation);

// The disk after the end of all processes of its machine.
[[nodiscard]] DiskTree without_processes(DiskTree tree);

}  // namespace motley::testing
