// Hints how to resume a training that ended early. Only this file makes them: whether a run can be
// resumed depends on the checkpoints in its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// Commands for the user to type, quoted for a shell; empty if the run was not started by one.
struct Commands {
  std::string again;             // starts the run from its beginning
  std::string resume;            // resumes from the newest checkpoint
  std::string resume_settled;    // without --allow-changes: a checkpoint has the changed keys
  std::string resume_past_stop;  // and without the --stop-after at which the session ended
};

// Appends to the error's remedy how to resume the run in the folder; the command stands on a line
// of its own, the last one. first_step: of this session. REQUIRES: the folder still belongs to this
// launch.
[[nodiscard]] Error with_resume_hint(Error error,
                                     const std::filesystem::path& run_dir,
                                     std::int64_t first_step,
                                     const Commands& commands);

}  // namespace motley
