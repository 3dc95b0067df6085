// Files that hold a text packed, as people download them: compressed, or as an archive, a table or
// a document. Told by their first bytes, whatever they are called.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace motley {

// What is wrong with a packed file in the place of a text, with the command that unpacks it;
// nothing when the bytes, of the whole file or its beginning, are of none of these formats. kData.
[[nodiscard]] std::optional<Error> packed_text(std::string_view bytes,
                                               const std::filesystem::path& path);

// The same in the place of a file of tokens, and of files in which other programs keep tensors.
[[nodiscard]] std::optional<Error> packed_tokens(std::string_view bytes,
                                                 const std::filesystem::path& path);

}  // namespace motley
