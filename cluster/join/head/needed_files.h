// The files of a run that a joined machine needs, with their hashes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/join/join_messages.h"
#include "run_config/config.h"

namespace motley {

// The errors of needed_files() that are found without reading the files.
[[nodiscard]] Result<void> check_files(const Config& config);

// The package, initial weights and data of a run whose paths are absolute: the files that its
// readers open, and no others. In the order of their paths, each once. kConfig if a path names
// nothing; kCorrupt if a file cannot be read; other errors as files_of_data(). `progress` is called
// with the file that is hashed next.
[[nodiscard]] Result<std::vector<OfferedFile>> needed_files(
    const Config& config, const std::function<void(const std::string& path)>& progress);

}  // namespace motley
