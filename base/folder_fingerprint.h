// FolderFingerprint: a fingerprint to check whether the same path on another machine holds the same
// files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace motley {

struct FolderFingerprint {
  std::filesystem::path folder;  // absolute
  std::string small_file;        // in `folder`; contains the hash of the large file
  std::string small_sha256;      // 64 lower-case hexadecimal digits
  std::string large_file;  // in `folder`; too large to read each time, so only its size is compared
  std::uint64_t large_bytes = 0;
};

}  // namespace motley
