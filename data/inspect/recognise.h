// Recognises what kind of training data a path holds, without a configuration.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// The value of data.kind for the path: "text", "tokens", "arrays" or "images", by the names and the
// first bytes of its files. kData, with what was found, if it is none of these; kConfig if it does
// not exist. The data may still be damaged.
[[nodiscard]] Result<std::string> recognise_data(const std::filesystem::path& path);

}  // namespace motley
