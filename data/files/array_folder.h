// A folder of .npy arrays: inputs.npy, or inputs.NAME.npy for each input of a model that takes them
// by name, and targets.npy; optionally the same with eval_ in front. docs/formats/data.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// `names`: of the inputs, in their order; one "" for inputs.npy. Mapped, not loaded. kData if a
// file is missing or damaged, or the arrays do not match.
[[nodiscard]] Result<ExampleFiles> open_array_folder(const std::filesystem::path& folder,
                                                     const std::vector<std::string>& names);

}  // namespace motley
