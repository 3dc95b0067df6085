// The last renames of a commit: a complete partial folder becomes the checkpoint of its step.
// Reasons: docs/formats/checkpoint.md, "Commit".
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// Removes all other files from the folder: leftovers of an interrupted attempt at the same step,
// perhaps by other ranks.
[[nodiscard]] Result<void> remove_all_but(const std::filesystem::path& folder,
                                          const std::set<std::string>& names);

// Renames the partial folder to its final name, replacing a committed checkpoint of the same step.
// Between any two operations the step is listed as its old or its new checkpoint. REQUIRES: the
// partial folder and its manifest are complete and synced.
[[nodiscard]] Result<void> publish_partial(const SaveLocation& location);

}  // namespace motley
