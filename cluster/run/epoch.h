// The epoch of a launch: a number that no other launch into the same run folder has, and that is
// higher than all before. Frames and handshakes carry it, so that a worker which an earlier launch
// left behind cannot take part in a later one.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace motley {

// The epoch of the newest launch into the folder; 0 = none yet. kCorrupt when the file `epoch` in
// it cannot be read or holds no number.
[[nodiscard]] Result<std::uint32_t> current_epoch(const std::filesystem::path& run_dir);

// Begins the next one: it is on the disk when this returns. REQUIRES: nobody else launches into the
// folder.
[[nodiscard]] Result<std::uint32_t> begin_epoch(const std::filesystem::path& run_dir);

}  // namespace motley
