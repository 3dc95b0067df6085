// Checks of a library's file before it is opened.
#pragma once

#include <filesystem>

namespace motley {

// Whether it is a library for this processor that is truncated, as after an interrupted copy.
// Opening one ends the process by SIGBUS when the system's loader reads the missing part. False for
// all other files, which the loader rejects with a message.
[[nodiscard]] bool is_truncated(const std::filesystem::path& file);

}  // namespace motley
