// What must be found of a run over several machines after a cut of the power at any point of its
// record: of one of them, of all at once, and with one that is lost for good.
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
#include "tests/cluster/own_folders/told_saves.h"

namespace motley::testing {

struct MachineCutTally {
  std::size_t cuts = 0;    // places in a record
  std::size_t states = 0;  // different ones, each with what was told
  std::size_t restarts = 0;
  std::vector<std::string> faults;
};

// How a state is gone on from now and then, and what else is looked at.
struct MachineCutOptions {
  CutKinds kinds;                 // that are tried at each place
  std::size_t place_every = 1;    // of so many places one is looked at, and all that tell something
  std::size_t restart_every = 0;  // of so many states one is gone on from; 0 = none
  std::size_t keep_every = 0;     // and one is kept; 0 = none
  std::size_t faults_max = 8;     // ends the search
};

class MachineCuts {
 public:
  MachineCuts(Layout layout, SavedFiles& saved, MachineCutOptions options);

  // The recorded folder holds one folder a machine, of its name. Stops when it has so many faults.
  void run(const DiskTrees& before, const std::vector<DiskOperation>& log, ToldSaves told);

  [[nodiscard]] const MachineCutTally& tally() const { return tally_; }

  struct Kept {
    DiskTrees trees;
    ToldSaves told;
  };

  // States that were found, some of them, with what is promised to a launch that goes on there.
  [[nodiscard]] const std::vector<Kept>& kept_states() const { return kept_; }

 private:
  // A disk as it is found, and one number for it.
  struct Disk {
    DiskTree tree;
    std::size_t print = 0;
  };

  using Disks = std::map<std::string, Disk>;  // by machine

  [[nodiscard]] static Disk disk_of(DiskTree tree);
  [[nodiscard]] static Disk as_it_is(const DiskModel& model);

  // `changed`: the machine whose disk the last operation was on; "" = all may differ in what was
  // told.
  void look_at(const std::map<std::string, DiskModel>& models,
               const Disks& now,
               const std::string& changed,
               const ToldSaves& told,
               std::size_t place);
  // `lost`: the machine that is gone for good; "" = none.
  void look_at(const Disks& disks,
               const std::string& lost,
               const ToldSaves& told,
               const std::string& words);
  // Whether it differs from all states before it.
  [[nodiscard]] bool is_new(const Disks& disks, const std::string& lost, const ToldSaves& told);
  void show(const DiskTrees& trees);

  // What a launch would go on from, and what is wrong with it.
  struct Resume {
    std::string fault;
    bool is_possible = true;  // from a checkpoint, or from the start
    std::int64_t step = 0;
    std::optional<int> version;  // of the checkpoint, where there is one
  };

  [[nodiscard]] Resume look_for_resume(const DiskTrees& trees, bool lost, const ToldSaves& told);
  // The launch itself, in the disks, and what it leaves.
  [[nodiscard]] Result<void> go_on(const std::optional<int>& version);
  [[nodiscard]] Result<void> check_what_is_left(std::int64_t last_step) const;

  const Layout layout_;
  SavedFiles& saved_;
  const MachineCutOptions options_;
  MachineCutTally tally_;
  std::unordered_set<std::size_t> seen_;
  std::vector<Kept> kept_;
  std::map<std::string, DiskCopy> shown_;  // by machine
  const PlayedMachines machines_;          // on those
};

// Of an operation in the recorded folder: the machine, "" of a mark; and what it is on its disk.
[[nodiscard]] std::string machine_of(const std::string& path);
[[nodiscard]] DiskOperation within_machine(DiskOperation operation);

// As it is when the machine's processes are gone.
[[nodiscard]] DiskTree without_processes(DiskTree tree);

}  // namespace motley::testing
