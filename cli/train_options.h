// The options of `motley train` and `motley launch`.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/arguments.h"

namespace motley {

[[nodiscard]] std::vector<OptionSpec> train_options();
[[nodiscard]] std::vector<OptionSpec> launch_options();

// kUsage for options that contradict each other or need another one.
[[nodiscard]] Result<void> check_train_options(const Arguments& arguments);

}  // namespace motley
