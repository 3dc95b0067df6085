// Finds an intact file of a checkpoint in a run folder, wherever an interrupted save, commit or
// copy has left it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace motley {

struct FileSearch {
  std::optional<std::filesystem::path> intact;   // with the requested size and hash
  std::optional<std::filesystem::path> damaged;  // a file of that name with others
};

// Searches all valid folders of the step, the committed one first, and returns the first intact
// file. Reads every byte; `work` counts them (nullptr: not counted). kInterrupted if stopped,
// within a block of 1 MiB.
[[nodiscard]] Result<FileSearch> find_file(const std::filesystem::path& run_dir,
                                           std::int64_t step,
                                           const WrittenFile& file,
                                           ProgressCounter* work,
                                           const std::stop_token& stop = {});

// The bytes that find_file() reads for these files if all existing ones are intact.
[[nodiscard]] std::uint64_t bytes_to_read(const std::filesystem::path& run_dir,
                                          std::int64_t step,
                                          const std::vector<WrittenFile>& files);

// Whether the file is regular and has that size and hash. Counting and stopping as in find_file().
[[nodiscard]] Result<bool> is_intact(const std::filesystem::path& path,
                                     const WrittenFile& file,
                                     ProgressCounter* work,
                                     const std::stop_token& stop = {});

}  // namespace motley
