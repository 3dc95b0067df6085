// The last moves of a commit: from a partial folder that is whole to the checkpoint of its step.
// Reasons: docs/formats/checkpoint.md, "Commit".
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// Removes what else lies in the folder: what an interrupted attempt at the same step has left,
// perhaps by other ranks.
[[nodiscard]] Result<void> keep_only(const std::filesystem::path& folder,
                                     const std::set<std::string>& names);

// Gives the partial folder its final name, in place of a committed checkpoint of the same step. At
// every point between two operations the step is listed as its old or its new checkpoint.
// REQUIRES: the partial folder is whole and synced, its manifest too.
[[nodiscard]] Result<void> publish_partial(const SavePlace& place);

}  // namespace motley
