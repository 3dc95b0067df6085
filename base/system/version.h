// The version of Motley.
#pragma once

#include <filesystem>
#include <string>

namespace motley {

// "0.1.0".
[[nodiscard]] std::string motley_version();

// Distinguishes builds of one version: a hash of the program's file, 16 hexadecimal digits. Empty
// if the file cannot be read.
[[nodiscard]] std::string build_of(const std::filesystem::path& program);

}  // namespace motley
