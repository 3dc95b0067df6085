// Installs a ServiceUnit for this user.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "cluster/supervisor/service_unit.h"

namespace motley {

// Writes the unit into the user's folder of systemd units, and returns its path. kConfig if a unit
// of that name is of another run or of another program, or a text has a line feed.
[[nodiscard]] Result<std::filesystem::path> write_unit(const ServiceUnit& unit);

// Starts the unit, now and with the user's session. kConfig, with the words of systemctl, if this
// user has no running systemd.
[[nodiscard]] Result<void> start_unit(const ServiceUnit& unit);

}  // namespace motley
