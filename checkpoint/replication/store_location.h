// Location of a machine's part of a run: the launcher's folder if the machine sees it, else a
// folder of its own. Files: docs/formats/launches.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

struct StoreLocation {
  std::filesystem::path dir;  // absolute
  bool is_shared = true;      // it is the launcher's folder
  // Of an existing folder other than the launcher's: 16 hexadecimal digits, and the change time of
  // their file by the disk's clock. A copy of the file has another time.
  std::string id = {};
  std::int64_t id_changed_ns = 0;
};

// The launcher's description of its run folder.
struct LauncherFolder {
  std::string dir;      // absolute, as the launcher sees it; "" = not looked for
  std::string own_dir;  // the machine's own; "~/" = its user's home
  std::string launch;   // launch_text
};

enum class IfAbsent { kLeave, kMake };  // kMake: its parents' names are synced too

// kConfig if "~" is used without a home folder, kCorrupt if a folder cannot be read or created.
[[nodiscard]] Result<StoreLocation> find_store(const LauncherFolder& launcher, IfAbsent if_absent);

}  // namespace motley
