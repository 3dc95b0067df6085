// Where a run is looked for: whether a folder holds one, and what to name where it does not.
#pragma once

#include <string>

#include "base/result.h"
#include "cluster/run/run_folder.h"

namespace motley {

// kConfig where the folder is not there or holds no run, kCorrupt where this process may not look.
// The remedy names the runs inside.
[[nodiscard]] Result<void> check_holds_run(const RunFolder& folder);

// A path may be any bytes; a document is UTF-8.
[[nodiscard]] std::string readable_text(const std::string& text);

}  // namespace motley
