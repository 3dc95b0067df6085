// How a training that ended early goes on: the one place that says so, since only the run folder
// tells whether there is anything to go on from.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// What a person types, quoted for a shell; empty where nobody typed anything.
struct Commands {
  std::string again;             // the same run from its beginning
  std::string resume;            // on from its newest checkpoint
  std::string resume_past_stop;  // the same where the session ended at its --stop-after
};

// The error of a run in the folder, with what the person can do next behind its own remedy: the
// last line is the command, by itself. REQUIRES: the folder still is this launch's.
[[nodiscard]] Error with_way_on(Error error,
                                const std::filesystem::path& run_dir,
                                const Commands& commands);

}  // namespace motley
