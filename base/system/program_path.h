// Where this program's own file lies.
#pragma once

#include <filesystem>

namespace motley {

// Empty when the system does not tell.
[[nodiscard]] std::filesystem::path program_path();

}  // namespace motley
