// What a page of a run is made of, gathered from its folder.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cluster/process/work_line.h"
#include "pictures/pages/run_page.h"
#include "plan/trace_file.h"
#include "tools/arguments.h"

namespace motley {

// The last step that the run traced. kConfig where it traced none.
[[nodiscard]] Result<TracedStep> read_traced_step(const std::filesystem::path& run);

// All that there is of the run; what is missing or cannot be read is said in its place. With
// --cluster, the links are those of its file; else as the plan counts on them. kConfig when the
// folder holds no run. `line` says what is being done.
[[nodiscard]] Result<RunToShow> run_to_show(const std::filesystem::path& run,
                                            const Arguments& arguments,
                                            WorkLine& line);

}  // namespace motley
