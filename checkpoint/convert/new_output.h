// NewOutput: a folder or a file that a command makes, there whole or not at all.
//
// It is written in a hidden folder beside its place, `.NAME.partial`, and gets its name when all of
// it is on the disk. What is there already is never written over. The hidden folder goes away with
// this object; one that a killed process has left is taken over by whoever makes the same output
// next, and counts for nothing until then.
// One owner thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace motley {

class NewOutput {
 public:
  enum class Kind { kFolder, kFile };

  // kConfig when something of that name is there, or another process is making it; kCorrupt when
  // the place cannot be written, or has not `needed_bytes` free. Makes the folders above it.
  [[nodiscard]] static Result<NewOutput> begin(const std::filesystem::path& destination,
                                               Kind kind,
                                               std::uint64_t needed_bytes);
  // kConfig when something of that name is there: for finding it before the work.
  [[nodiscard]] static Result<void> check_free(const std::filesystem::path& destination);
  NewOutput(NewOutput&& other) noexcept;
  NewOutput& operator=(NewOutput&&) = delete;
  NewOutput(const NewOutput&) = delete;
  NewOutput& operator=(const NewOutput&) = delete;
  ~NewOutput();

  // Where to write it: the folder, or the file.
  [[nodiscard]] std::filesystem::path place() const;

  // REQUIRES: what was written is synced. kConfig when something has taken the name meanwhile.
  [[nodiscard]] Result<void> commit();

 private:
  NewOutput(std::filesystem::path destination, Kind kind, std::filesystem::path partial, int lock);

  [[nodiscard]] Result<void> give_name() const;

  std::filesystem::path destination_;
  Kind kind_;
  std::filesystem::path partial_;  // the hidden folder; empty when it is no longer this object's
  int lock_;                       // holds it against other processes
};

}  // namespace motley
