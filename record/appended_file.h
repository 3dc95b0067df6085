// AppendedFile: a file that grows by whole pieces and tolerates a temporarily full disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

class AppendedFile {
 public:
  // Opens the file for appending after the first `whole_bytes`; bytes after them are cut off.
  // Creates the file if there is none. Up to `waiting_bytes_max` bytes wait in memory for disk
  // space. kCorrupt if it cannot be opened or cut.
  [[nodiscard]] static Result<AppendedFile> open(const std::filesystem::path& path,
                                                 std::int64_t whole_bytes,
                                                 std::size_t waiting_bytes_max);

  // Writes one piece immediately, so that readers can follow the run. kCorrupt if it cannot be
  // written whole: the file then ends with its last whole piece, and this one waits in memory for
  // the next call. A temporarily full disk thus loses no data.
  [[nodiscard]] Result<void> append(std::string_view piece);

  // Tries a last time to write the waiting pieces. kCorrupt if pieces are missing from the file.
  [[nodiscard]] Result<void> finish();

 private:
  AppendedFile(OwnedFd fd, std::filesystem::path path, std::int64_t whole_bytes, std::size_t max);

  [[nodiscard]] Result<void> write_waiting();

  OwnedFd fd_;
  std::filesystem::path path_;
  std::int64_t whole_bytes_;  // of the pieces in the file
  std::size_t waiting_bytes_max_;
  std::string waiting_;        // whole pieces not yet written
  std::int64_t left_out_ = 0;  // pieces that did not fit in memory either
};

}  // namespace motley
