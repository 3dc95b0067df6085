// The data of a run's page, read from its folder.
#pragma once

#include <filesystem>
#include <string>

#include "base/process/progress_line.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "figures/pages/run_page.h"
#include "record/trace_file.h"

namespace motley {

// The run's last traced step. kConfig if no step was traced.
[[nodiscard]] Result<TracedStep> read_traced_step(const std::filesystem::path& run);

// All data of the run; missing or unreadable parts are replaced by the reason. With --cluster the
// links are those of its file, else as the plan assumes. kConfig if the folder holds no run. `line`
// shows the progress.
[[nodiscard]] Result<DisplayedRun> displayed_run(const std::filesystem::path& run,
                                                 const Arguments& arguments,
                                                 ProgressLine& line);

}  // namespace motley
