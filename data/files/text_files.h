// The files of a folder of texts: which are read, and which are left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/files/left_out.h"

namespace motley {

struct TextFiles {
  std::vector<std::filesystem::path> files;  // ordered by the bytes of their paths
  LeftOut left_out;                          // for a reason that may surprise
};

// The regular files below `root` whose names end with one of `suffixes` (empty = all). Links are
// not followed. Left out are hidden folders, builds of CMake, runs of this program, folders named
// build or runs, and what operating systems leave behind. kData if a folder cannot be read.
[[nodiscard]] Result<TextFiles> find_text_files(const std::filesystem::path& root,
                                                const std::vector<std::string>& suffixes);

}  // namespace motley
