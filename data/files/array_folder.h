// A folder of .npy arrays: inputs.npy and targets.npy, and optionally held-out eval_inputs.npy and
// eval_targets.npy. docs/formats/data.md.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// Mapped, not loaded. kData if a file is missing or damaged, or the arrays do not match.
[[nodiscard]] Result<ExampleFiles> open_array_folder(const std::filesystem::path& folder);

}  // namespace motley
