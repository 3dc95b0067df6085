// The same checkpoint in another number of files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/work_watch.h"

namespace motley {

struct Resharding {
  std::filesystem::path checkpoint;
  std::filesystem::path destination;  // a folder that is not there yet
  int files = 1;                      // of parameters, and as many of the optimizer's
  std::vector<std::string> order;  // the parameters' names in the model's order; others come last
};

// Whole tensors, consecutive in that order, each file as light as can be; a parameter's moments lie
// in the file of its number. It is written in the present version: residuals of version 1 are
// renamed. Returns the new manifest, whose parameter hash is the old one's.
// kCorrupt when the checkpoint is damaged, kConfig when the destination is there.
[[nodiscard]] Result<Manifest> reshard(const Resharding& request, WorkWatch& watch);

}  // namespace motley
