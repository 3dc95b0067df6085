// How a training that ended early goes on: the one place that says so, since only the run folder
// tells whether there is anything to go on from.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace motley {

// The error of a run in the folder, with what the person can do next behind its own remedy.
// REQUIRES: the folder still is this launch's.
[[nodiscard]] Error with_way_on(Error error, const std::filesystem::path& run_dir);

}  // namespace motley
