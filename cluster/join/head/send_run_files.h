// Sends the files of a run to the machines that have joined by ticket. All other machines see them
// by themselves, under the same paths.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// To those of these machines of the cluster that have joined, as far as their caches lack the
// files; no effect without such machines. `config`: with absolute paths. `line`, if given, shows
// the progress. Errors as in needed_files() and send_files().
[[nodiscard]] Result<void> send_run_files(const Cluster& cluster,
                                          const std::set<std::string>& machines,
                                          const Config& config,
                                          ProgressLine* line,
                                          const Log& log);

}  // namespace motley
