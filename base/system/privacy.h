// What other people on this machine may see of a process and of the files it makes.
#pragma once

#include <filesystem>

namespace motley {

// From now on, nothing that this process makes can be read by everybody, and by the folder's group
// only as far as the folder itself can: the process's umask follows from the folder's rights. An
// absent folder counts as private. Changes a setting of the whole process.
void keep_files_private(const std::filesystem::path& folder);

// From now on, a crash of this process or of its children leaves no image of its memory, which
// holds the secret of the launch. Changes a setting of the whole process.
void forbid_core_dumps();

}  // namespace motley
