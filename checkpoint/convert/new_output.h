// NewOutput: a folder or a file that a command creates completely or not at all.
//
// It is written in a hidden folder next to its destination, `.NAME.partial`, and gets its name once
// all of it is on the disk. Existing files are never overwritten. The hidden folder is removed with
// this object; one that a killed process has left is ignored, until the next writer of the same
// output reuses it. One owner thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace motley {

class NewOutput {
 public:
  enum class Kind { kFolder, kFile };

  // kConfig if the destination exists, or another process is writing it; kCorrupt if the folder is
  // not writable, or has less than `needed_bytes` free. Creates parent folders.
  [[nodiscard]] static Result<NewOutput> begin(const std::filesystem::path& destination,
                                               Kind kind,
                                               std::uint64_t needed_bytes);
  // kConfig if the destination exists: for a check before the work.
  [[nodiscard]] static Result<void> check_free(const std::filesystem::path& destination);
  NewOutput(NewOutput&& other) noexcept;
  NewOutput& operator=(NewOutput&&) = delete;
  NewOutput(const NewOutput&) = delete;
  NewOutput& operator=(const NewOutput&) = delete;
  ~NewOutput();

  // The path to write to: the folder, or the file.
  [[nodiscard]] std::filesystem::path place() const;

  // REQUIRES: the files written are synced. kConfig if the destination has been created meanwhile.
  [[nodiscard]] Result<void> commit();

 private:
  NewOutput(std::filesystem::path destination, Kind kind, std::filesystem::path partial, int lock);

  [[nodiscard]] Result<void> give_name() const;

  std::filesystem::path destination_;
  Kind kind_;
  std::filesystem::path partial_;  // the hidden folder; empty once released
  int lock_;                       // the lock on it against other processes
};

}  // namespace motley
