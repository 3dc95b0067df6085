// The table of commands, for the manual and the completions.
#pragma once

#include <vector>

#include "cli/arguments.h"

namespace motley {

[[nodiscard]] std::vector<CommandSpec> all_specs();

}  // namespace motley
