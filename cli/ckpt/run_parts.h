// Operands of commands for runs whose checkpoints are distributed over several machines' folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// The operand: a run, or a checkpoint in one.
struct NamedRun {
  std::filesystem::path run;
  std::optional<std::int64_t> step;
};

// kConfig if it is not a run's folder; an empty folder is accepted, as the place to restore a lost
// run into.
[[nodiscard]] Result<NamedRun> named_run(const std::string& text);

// The responding machines of the cluster; the others are logged to `log`. kInterrupted or
// kTerminated after a signal.
[[nodiscard]] Result<std::set<std::string>> answering_machines(const Cluster& cluster,
                                                               const std::filesystem::path& program,
                                                               const Log& log);

}  // namespace motley
