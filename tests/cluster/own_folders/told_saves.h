// ToldSaves: what a run over several machines has told of its saves up to some point of a record,
// and what must therefore be found after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/stores/restore_point.h"
#include "tests/cluster/own_folders/played_launch.h"
#include "tests/support/disk_model.h"

namespace motley::testing {

// By machine.
using DiskTrees = std::map<std::string, DiskTree>;

class ToldSaves {
 public:
  // `copies`: that a checkpoint has when it has all.
  explicit ToldSaves(std::size_t copies) : copies_(copies) {}

  void hear(const std::string& mark);
  // A launch goes on from that version of the step, or with nothing from the start: of what was
  // told before no more is promised than this.
  void go_on_from(std::int64_t step, const std::optional<int>& version);

  // "", or what is wrong with what a launch would go on from: it is older than what was told to be
  // saved (with `lost`, a machine that is gone for good: to be copied too), or what nobody saved,
  // or not whole where it is said to be. `trees`: what the disks hold.
  [[nodiscard]] std::string broken_by(const std::optional<RestorePoint>& found,
                                      const Stores& stores,
                                      const DiskTrees& trees,
                                      const SavedFiles& saved,
                                      bool lost) const;

  // The version of a step's files; nothing where nobody has saved these.
  [[nodiscard]] std::optional<int> version_of(const CheckpointMetadata& texts,
                                              const SavedFiles& saved) const;

  // The newest that must be found; 0 = none.
  [[nodiscard]] std::int64_t must_be_found(bool lost) const;

  [[nodiscard]] std::string text() const;

 private:
  struct Save {
    std::set<int> begun;           // versions
    std::optional<int> committed;  // the last one
    std::set<std::string> copies;  // of it, each from one machine to another
    std::optional<int> copied;     // the last one with all of them
  };

  const std::size_t copies_;
  std::map<std::int64_t, Save> saves_;  // by step
};

}  // namespace motley::testing
