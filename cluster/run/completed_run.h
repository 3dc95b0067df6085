// Whether a run has nothing left to train.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "run_config/config.h"

namespace motley {

// The last step, if the newest checkpoint in the folder is of the last step by this configuration,
// or of one after which the run stopped early by it. Only the manifest is read.
[[nodiscard]] std::optional<std::int64_t> completed_step(const std::filesystem::path& run_dir,
                                                         const Config& config);

}  // namespace motley
