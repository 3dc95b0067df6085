// LeftOut: the files of a folder that are not read, for the one line that says so.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

// Whether the name is of a file or folder that an operating system or a file server puts beside
// data: macOS (`._x`, `.DS_Store`, `__MACOSX`), Windows (`Thumbs.db`, `desktop.ini`), Synology.
[[nodiscard]] bool is_system_leftover(const std::filesystem::path& path);

class LeftOut {
 public:
  // `reason`, for one as for many: "as no text".
  void add(std::string_view reason, const std::filesystem::path& path);

  [[nodiscard]] bool is_empty() const { return groups_.empty(); }

  // "left out of DIR: 2 as no text (a.png, b/c.bin), 1 as a link (d)", in the order of the first
  // of each reason, with up to three names each, below `folder`. REQUIRES: !is_empty().
  [[nodiscard]] std::string line(const std::filesystem::path& folder) const;

 private:
  struct Group {
    std::string reason;
    std::size_t count = 0;
    std::vector<std::filesystem::path> first;  // few of them
  };

  std::vector<Group> groups_;
};

}  // namespace motley
