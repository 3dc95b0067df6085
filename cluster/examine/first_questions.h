// What can be asked of all machines at once, by their shells, before a worker starts on any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

struct FirstAnswer {
  std::string trouble;     // why the machine cannot be used; "" = it can, or is this one
  std::string unwritable;  // the folder there that would hold its run folder and takes no files
};

// One answer a machine, in their order. `run_dir`: absolute, of the coming run; `program`:
// motley-stage here. kInterrupted and kTerminated.
[[nodiscard]] Result<std::vector<FirstAnswer>> ask_first(const Cluster& cluster,
                                                         const std::filesystem::path& run_dir,
                                                         const std::filesystem::path& program);

}  // namespace motley
