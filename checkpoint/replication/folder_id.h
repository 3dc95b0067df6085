// The ids of a run folder, each in a small file: `store.json` identifies the folder, so that
// machines that see the same folder are recognised, and `run.json` the run, so that two runs of one
// name are distinguished. Format: docs/formats/checkpoint.md, "On several machines".
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// 16 hexadecimal digits.
[[nodiscard]] Result<std::string> make_folder_id();

// The text of such a file; `format` is its format key. read_folder_id: kCorrupt if it is not valid.
[[nodiscard]] std::string folder_id_text(const std::string& format, const std::string& id);
[[nodiscard]] Result<std::string> read_folder_id(const std::filesystem::path& file);

// "" if the folder has no run id.
[[nodiscard]] Result<std::string> read_run_id(const std::filesystem::path& run_dir);
// Assigns the folder to that run. REQUIRES: this launch holds the folder.
[[nodiscard]] Result<void> write_run_id(const std::filesystem::path& run_dir,
                                        const std::string& id);

}  // namespace motley
