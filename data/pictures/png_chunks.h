// The chunks of a PNG file: their checksums, and one by its type. libpng only warns of a damaged
// chunk that it can do without, although pixels may depend on it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace motley {

// The content of the first chunk of this type; nullopt if there is none. REQUIRES: a PNG file.
[[nodiscard]] std::optional<std::span<const std::byte>> find_png_chunk(
    std::span<const std::byte> file, std::string_view type);

// What is damaged outside of the pixels' data, which libpng checks, and of texts; "" if nothing is.
// The end of the file may be missing from its last chunk, which is empty, on. REQUIRES: a PNG file.
[[nodiscard]] std::string damage_of_png_chunks(std::span<const std::byte> file);

}  // namespace motley
