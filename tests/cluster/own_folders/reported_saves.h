// ReportedSaves: the saves that a run over several machines has reported up to a point of a record,
// and the restore point that is therefore guaranteed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/replication/restore_point.h"
#include "tests/cluster/own_folders/played_launch.h"
#include "tests/support/disk_model.h"

namespace motley::testing {

// By machine.
using DiskTrees = std::map<std::string, DiskTree>;

class ReportedSaves {
 public:
  // `copies`: the number of copies of a complete checkpoint.
  explicit ReportedSaves(std::size_t copies) : copies_(copies) {}

  void hear(const std::string& mark);
  // A launch resumes from this version of the step, or from the start without one: earlier reports
  // guarantee nothing beyond it.
  void go_on_from(std::int64_t step, const std::optional<int>& version);

  // "", or the fault of the restore point of a launch: it is older than a save that was reported
  // (with `lost`, a machine that is lost permanently: and copied), has values that were not saved,
  // or is incomplete on a machine that should hold it. `trees`: the contents of the disks.
  [[nodiscard]] std::string broken_by(const std::optional<RestorePoint>& found,
                                      const StoreInventory& stores,
                                      const DiskTrees& trees,
                                      const SavedFiles& saved,
                                      bool lost) const;

  // The version of a step's files; nullopt if they were never saved together.
  [[nodiscard]] std::optional<int> version_of(const CheckpointMetadata& step_metadata,
                                              const SavedFiles& saved) const;

  // The newest step that is guaranteed; 0 = none.
  [[nodiscard]] std::int64_t must_be_found(bool lost) const;

  [[nodiscard]] std::string text() const;

 private:
  struct Save {
    std::set<int> begun;           // versions
    std::optional<int> committed;  // the last version
    std::set<std::string> copies;  // of `committed`, each from one machine to another
    std::optional<int> copied;     // the last version with all copies
  };

  const std::size_t copies_;
  std::map<std::int64_t, Save> saves_;  // by step
};

}  // namespace motley::testing
