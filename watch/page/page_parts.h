// The parts of a run's page: its HTML, CSS and scripts, and the library that draws its curves, all
// compiled in. The list in watch/CMakeLists.txt is the only one of them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace motley {

struct EmbeddedFile {
  std::string_view name;  // "page.css"
  std::string_view text;
};

// Made by cmake/EmbedFiles.cmake.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

struct PagePart {
  std::string_view type;  // as a browser is told
  std::string_view text;
};

// Of a path: "/" is the page itself, "/NAME" a part of it. Nothing for any other.
[[nodiscard]] const PagePart* find_page_part(std::string_view path);

}  // namespace motley
