// Where on a machine its part of a run lies: in the launcher's folder where the machine sees that
// one, else in a folder of its own. Files: docs/formats/launches.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

struct StorePlace {
  std::filesystem::path dir;  // absolute
  bool is_shared = true;      // it is the launcher's
  // Of a folder that is there and not the launcher's: 16 hexadecimal digits, and when the file with
  // them last changed its place or name, by the disk's clock. A copy of the file has another time.
  std::string id = {};
  std::int64_t id_changed_ns = 0;
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
