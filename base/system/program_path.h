// The path of this program's own file.
#pragma once

#include <filesystem>

namespace motley {

// Empty if the system does not report it.
[[nodiscard]] std::filesystem::path program_path();

}  // namespace motley
