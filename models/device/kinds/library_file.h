// What a library's file tells before it is opened.
#pragma once

#include <filesystem>

namespace motley {

// Whether it is a library for this processor that lacks its end, as after a copy that broke off:
// opening one ends the process by SIGBUS where the system's loader touches what is not there. False
// for everything else, which the loader refuses in words.
[[nodiscard]] bool is_cut_short(const std::filesystem::path& file);

}  // namespace motley
