// The files of a run that a joined machine needs, with their hashes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/join/join_messages.h"

namespace motley {

// The files behind these paths (absolute; files, folders with all below them, or token
// files as find_token_files accepts them) and those that readers of the data look for beside a
// file: of the same name with another suffix, and meta.pkl. In the order of their paths, each once.
// kConfig if a path names nothing; kCorrupt if a file cannot be read. `progress` is called with the
// file that is hashed next.
[[nodiscard]] Result<std::vector<OfferedFile>> needed_files(
    const std::vector<std::string>& paths,
    const std::function<void(const std::string& path)>& progress);

}  // namespace motley
