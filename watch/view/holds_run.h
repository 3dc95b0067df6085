// Checks whether a folder holds a run, and suggests runs if it does not.
#pragma once

#include <string>

#include "base/result.h"
#include "record/run_folder.h"

namespace motley {

// kConfig if the folder does not exist or holds no run, kCorrupt if this process may not read it.
// The remedy names the runs inside.
[[nodiscard]] Result<void> check_holds_run(const RunFolder& folder);

// A path may contain arbitrary bytes; the result is valid UTF-8.
[[nodiscard]] std::string readable_text(const std::string& text);

}  // namespace motley
