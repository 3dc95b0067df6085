// Rewrites a checkpoint with another number of files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/work_observer.h"

namespace motley {

struct Resharding {
  std::filesystem::path checkpoint;
  std::filesystem::path destination;  // a folder that does not exist yet
  int files = 1;                      // of parameters, and as many of the optimizer
  std::vector<std::string> order;  // the parameters' names in the model's order; others come last
};

// Writes whole tensors, consecutive in that order, with the largest file as small as possible. A
// parameter's moments are in the optimizer file of the same number. The present version is written:
// residuals of version 1 are renamed. Returns the new manifest, with the old parameter hash.
// kCorrupt if the checkpoint is damaged, kConfig if the destination exists.
[[nodiscard]] Result<Manifest> reshard(const Resharding& request, WorkObserver& watch);

}  // namespace motley
