// Queries to the shells of all machines in parallel, before a worker starts on any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

struct FirstResponse {
  std::string problem;     // why the machine cannot be used; "" = it can, or is the launcher's
  std::string unwritable;  // the folder there that would hold its run folder but is not writable
};

// One answer per machine, in the same order. `run_dir`: absolute, of the coming run; `program`:
// motley-stage here. kInterrupted and kTerminated.
[[nodiscard]] Result<std::vector<FirstResponse>> query_first(const Cluster& cluster,
                                                             const std::filesystem::path& run_dir,
                                                             const std::filesystem::path& program);

}  // namespace motley
