// FolderMark: what tells whether another machine's folder of the same path holds the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace motley {

struct FolderMark {
  std::filesystem::path folder;  // absolute
  std::string small_file;        // in it; says what the large one holds, by its hash
  std::string small_sha256;      // 64 lower-case hexadecimal digits
  std::string large_file;        // in it; too large to be read each time, so that its size must do
  std::uint64_t large_bytes = 0;
};

}  // namespace motley
