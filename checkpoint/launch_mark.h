// A launch of a run, and the file in the run folder that shows it.
//
// Each launcher that takes a run folder gets a number, one more than the last, and draws a nonce;
// "000007-9f3c5a1b2c3d4e5f" is both. It names the partial folders of this launch's checkpoints, so
// that two launches never write into one, and stands in `launches/000007.json`, by which a worker
// sees that its run folder is the launcher's and no copy of it. Format: docs/formats/launches.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

struct LaunchId {
  // 1 is the first. It is the epoch that the frames and handshakes of this launch carry, so that a
  // worker which an earlier one left behind cannot take part.
  std::uint32_t number = 0;
  std::string nonce;  // 16 hexadecimal digits
};

[[nodiscard]] std::string launch_text(const LaunchId& launch);
// kCorrupt when `text` is not exactly what launch_text writes.
[[nodiscard]] Result<LaunchId> parse_launch(const std::string& text);

[[nodiscard]] std::filesystem::path launches_folder(const std::filesystem::path& run_dir);
[[nodiscard]] std::filesystem::path launch_file(const std::filesystem::path& run_dir,
                                                std::int64_t number);

// kConfig when the folder is not there or is not the one that this launch has taken: a copy, or
// another folder of that name. `launch`: as launch_text.
[[nodiscard]] Result<void> require_launch(const std::filesystem::path& run_dir,
                                          const std::string& launch);

}  // namespace motley
