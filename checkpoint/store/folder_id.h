// The ids of a run folder, each in a small file of it: of the folder itself (`store.json`), by
// which machines that see one folder are known, and of the run that it holds (`run.json`), by which
// two runs of one name are told apart. Format: docs/formats/checkpoint.md, "On several machines".
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// 16 hexadecimal digits.
[[nodiscard]] Result<std::string> make_folder_id();

// What such a file holds; `format` is what it says to be. kCorrupt where it is none.
[[nodiscard]] std::string folder_id_text(const std::string& format, const std::string& id);
[[nodiscard]] Result<std::string> read_folder_id(const std::filesystem::path& file);

// "" where the folder does not say whose it is.
[[nodiscard]] Result<std::string> read_run_id(const std::filesystem::path& run_dir);
// From now on the folder holds that run. REQUIRES: this launch holds the folder.
[[nodiscard]] Result<void> write_run_id(const std::filesystem::path& run_dir,
                                        const std::string& id);

}  // namespace motley
