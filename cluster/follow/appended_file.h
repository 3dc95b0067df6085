// AppendedFile: a file that grows by whole pieces, of a run that a full disk must not hurt.
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
  // Opens for adding behind the first `whole_bytes`; what lies behind them is cut off. Makes the
  // file when there is none. Up to `waiting_bytes_max` wait in memory for room on the disk.
  // kCorrupt when it cannot be opened or cut.
  [[nodiscard]] static Result<AppendedFile> open(const std::filesystem::path& path,
                                                 std::int64_t whole_bytes,
                                                 std::size_t waiting_bytes_max);

  // Hands one piece to the system at once, so others can follow the run. kCorrupt when it cannot be
  // written whole: the file then ends in its last whole piece, and this one waits in memory for the
  // next call, so that a disk that is full for a while costs nothing.
  [[nodiscard]] Result<void> append(std::string_view piece);

  // Tries a last time to write what waits. kCorrupt when pieces are missing from the file.
  [[nodiscard]] Result<void> finish();

 private:
  AppendedFile(OwnedFd fd, std::filesystem::path path, std::int64_t whole_bytes, std::size_t max);

  [[nodiscard]] Result<void> write_waiting();

  OwnedFd fd_;
  std::filesystem::path path_;
  std::int64_t whole_bytes_;  // of the pieces in the file
  std::size_t waiting_bytes_max_;
  std::string waiting_;        // whole pieces that are not in it yet
  std::int64_t left_out_ = 0;  // pieces that had no room in memory either
};

}  // namespace motley
