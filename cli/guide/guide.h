// The tables behind the manual and the completions: commands and configuration keys.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "cli/guide/completion.h"

namespace motley {

[[nodiscard]] std::vector<CommandSpec> all_specs();
[[nodiscard]] CompletionTable completion_table();

}  // namespace motley
