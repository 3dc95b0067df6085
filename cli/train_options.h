// The options of `motley train`, which `motley launch` has too.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/arguments.h"

namespace motley {

[[nodiscard]] std::vector<OptionSpec> train_options();

// kUsage for options that contradict each other or need another one.
[[nodiscard]] Result<void> check_train_options(const Arguments& arguments);

}  // namespace motley
