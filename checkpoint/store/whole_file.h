// Whether a file of a checkpoint lies whole in a run folder, wherever an interrupted save, commit
// or copy has left it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/safetensors.h"

namespace motley {

struct FoundFile {
  std::optional<std::filesystem::path> whole;    // size and hash are those asked for
  std::optional<std::filesystem::path> damaged;  // of that name, with others
};

// Looks into all folders of the step but those that mean nothing, the committed one first. Of
// several whole ones it is the first. Reads every byte; `work` counts them (nullptr: nobody does).
// kInterrupted when stopped, within a block of 1 MiB.
[[nodiscard]] Result<FoundFile> find_file(const std::filesystem::path& run_dir,
                                          std::int64_t step,
                                          const WrittenFile& file,
                                          WorkCounter* work,
                                          const std::stop_token& stop = {});

// How many bytes find_file() reads of these files, where all of them are whole that are there.
[[nodiscard]] std::uint64_t bytes_to_read(const std::filesystem::path& run_dir,
                                          std::int64_t step,
                                          const std::vector<WrittenFile>& files);

// Whether that file is regular, and has the size and the hash. The same.
[[nodiscard]] Result<bool> is_whole(const std::filesystem::path& path,
                                    const WrittenFile& file,
                                    WorkCounter* work,
                                    const std::stop_token& stop = {});

}  // namespace motley
