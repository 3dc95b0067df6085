// Finds the picture files of a folder and its classes, and what else is there.
// docs/formats/data.md.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// Counts the files that are no samples, by their kinds.
class LeftOutFiles {
 public:
  enum class Kind : std::uint8_t {
    kSystem,   // hidden or written by a system or a program, such as .DS_Store and __MACOSX
    kEmpty,    // without bytes
    kOther,    // no picture, such as labels.txt
    kNoClass,  // a picture outside of the classes' sub-folders
  };

  void add(Kind kind, const std::filesystem::path& path);

  // One line that says what was left out of `folder`; nullopt: nothing.
  [[nodiscard]] std::optional<std::string> line(const std::filesystem::path& folder) const;

 private:
  struct Count {
    std::uint64_t files = 0;
    std::filesystem::path first;  // the first in the order of their paths
  };

  std::array<Count, 4> counts_;  // [Kind]
};

// The sub-folders that are classes, sorted by name; hidden ones and those of systems are none.
// kData if the folder cannot be read.
[[nodiscard]] Result<std::vector<std::filesystem::path>> class_folders(
    const std::filesystem::path& folder, LeftOutFiles& left_out);

// The files in the folder and below it that are pictures by their suffix or, whatever their name,
// by their first bytes; sorted by path. kData if a folder cannot be read.
[[nodiscard]] Result<std::vector<std::filesystem::path>> list_pictures(
    const std::filesystem::path& folder, LeftOutFiles& left_out);

}  // namespace motley
