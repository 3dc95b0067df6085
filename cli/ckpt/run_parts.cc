#include "cli/ckpt/run_parts.h"

#include <fmt/format.h>

#include <system_error>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "cli/inputs.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/machine_stores.h"

namespace motley {

namespace fs = std::filesystem;

Result<NamedRun> named_run(const std::string& text) {
  MOTLEY_ASSIGN(const fs::path named, checkpoint_by_word(text));
  MOTLEY_TRY(check_exists(named));
  const fs::path path = absolute_normal_path(named);
  const auto name = parse_folder_name(path.filename().string());
  const fs::path above = path.parent_path();
  if (name && name->kind == FolderKind::kCommitted && above.filename() == checkpoints_root("")) {
    return NamedRun{above.parent_path(), name->step};
  }
  std::error_code code;
  // An empty folder may be the place to restore a lost run into.
  if (fs::exists(checkpoints_root(path), code) || fs::is_empty(path, code))
    return NamedRun{path, {}};
  return Error{ErrorCode::kConfig, fmt::format("{} is not a run folder", path.string()),
               "it has no checkpoints", "give the run's folder, or RUN/checkpoints/step-N"};
}

Result<std::set<std::string>> answering_machines(const Cluster& cluster,
                                                 const fs::path& program,
                                                 const Log& log) {
  std::set<std::string> machines = machine_names(cluster);
  MOTLEY_ASSIGN(const auto unusable, find_unusable(cluster, machines, program, kResponse_s));
  for (const auto& [name, problem] : unusable) {
    machines.erase(name);
    log.warn(fmt::format("without {}: {}", name, problem));
  }
  return machines;
}

}  // namespace motley
