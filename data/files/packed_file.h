// Detection of packed text, as it is often downloaded: compressed files, archives, tables and
// documents. Detected by their first bytes, whatever their names.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace motley {

// The error for a packed file in place of a text, with the command that unpacks it. nullopt if the
// bytes, of the whole file or its beginning, are of none of these formats. kData.
[[nodiscard]] std::optional<Error> packed_text(std::string_view bytes,
                                               const std::filesystem::path& path);

// The same in place of a file of tokens; also detects other programs' tensor files.
[[nodiscard]] std::optional<Error> packed_tokens(std::string_view bytes,
                                                 const std::filesystem::path& path);

}  // namespace motley
