// Where on a machine its part of a run lies: in the launcher's folder where the machine sees that
// one, else in a folder of its own. Files: docs/formats/launches.md.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

struct StorePlace {
  std::filesystem::path dir;  // absolute
  bool is_shared = true;      // it is the launcher's
  std::string
      id;  // 16 hexadecimal digits, of a folder that is there and not the launcher's; else ""
};

// What a launcher tells of its run folder.
struct LauncherFolder {
  std::string dir;      // absolute, as the launcher sees it; "" = is not looked for here
  std::string own_dir;  // where the machine's own is; "~/" stands for its user's home
  std::string launch;   // launch_text
};

enum class IfAbsent { kLeave, kMake };  // kMake: its name and those above it are on the disk then

// kConfig where there is no home to stand for "~", kCorrupt where a folder cannot be read or made.
[[nodiscard]] Result<StorePlace> find_store(const LauncherFolder& launcher, IfAbsent if_absent);

}  // namespace motley
