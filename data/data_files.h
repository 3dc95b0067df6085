// The files that training data is read from, for machines that have none of them.
#pragma once

#include <filesystem>
#include <set>

#include "base/result.h"
#include "run_config/config.h"

namespace motley {

// The files that the readers of data.path and data.holdout_path open, and those that they look for
// beside them: an index, meta.pkl. Of a folder these are files of the kind that is read, without
// hidden ones. Empty for synthetic data. kConfig if a path names nothing, or neither a file nor a
// folder; other errors as the readers'.
[[nodiscard]] Result<std::set<std::filesystem::path>> files_of_data(const DataConfig& data);

}  // namespace motley
