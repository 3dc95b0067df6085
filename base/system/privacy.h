// What other users of this machine can see of a process and of its files.
#pragma once

#include <filesystem>

namespace motley {

// Sets the process's umask from the folder's permissions: new files are never accessible to others,
// and to the folder's group only as far as the folder is. An absent folder counts as private.
// Changes the whole process.
void keep_files_private(const std::filesystem::path& folder);

// From now on a crash of this process or its children writes no core dump, which would contain the
// launch's secret. Changes the whole process.
void forbid_core_dumps();

}  // namespace motley
