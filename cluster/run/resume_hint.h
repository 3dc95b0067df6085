// How a training that ended early goes on: the one place that says so, since only the run folder
// tells whether there is anything to go on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// What a person types, quoted for a shell; empty where nobody typed anything.
struct Commands {
  std::string again;             // the same run from its beginning
  std::string resume;            // on from its newest checkpoint
  std::string resume_settled;    // the same once a checkpoint has what --allow-changes let pass
  std::string resume_past_stop;  // and where the session ended at its --stop-after
};

// The error of a run in the folder, with what the person can do next behind its own remedy: the
// last line is the command, by itself. `first_step`: of this session. REQUIRES: the folder still is
// this launch's.
[[nodiscard]] Error with_resume_hint(Error error,
                                     const std::filesystem::path& run_dir,
                                     std::int64_t first_step,
                                     const Commands& commands);

}  // namespace motley
