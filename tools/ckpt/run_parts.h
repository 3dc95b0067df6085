// A run whose checkpoints lie in the folders of several machines, as commands take it.
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

// What the person named: a run, or a checkpoint in one.
struct NamedRun {
  std::filesystem::path run;
  std::optional<std::int64_t> step;
};

// kConfig for what is no run's folder; an empty one may be where a run that was lost is to be.
[[nodiscard]] Result<NamedRun> named_run(const std::string& text);

// The machines of the cluster that answer; of the others `log` is told. kInterrupted and
// kTerminated.
[[nodiscard]] Result<std::set<std::string>> answering_machines(const Cluster& cluster,
                                                               const std::filesystem::path& program,
                                                               const Log& log);

}  // namespace motley
