// A small JSON file with a hash of its content, which is complete or absent after a crash.
#pragma once

#include <filesystem>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

// Writes {"content": …, "hash": …} as write_file_atomic does.
[[nodiscard]] Result<void> write_sealed_json(const std::filesystem::path& path,
                                             const Json& content);

// The content. kCorrupt if the file is absent, damaged or larger than 64 MiB.
[[nodiscard]] Result<Json> read_sealed_json(const std::filesystem::path& path);

}  // namespace motley
