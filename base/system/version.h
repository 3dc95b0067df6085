// Which Motley this is.
#pragma once

#include <filesystem>
#include <string>

namespace motley {

// "0.1.0".
[[nodiscard]] std::string motley_version();

// Tells builds of one version apart: a hash of a program's file, 16 hexadecimal digits. Empty when
// it cannot be read.
[[nodiscard]] std::string build_of(const std::filesystem::path& program);

}  // namespace motley
