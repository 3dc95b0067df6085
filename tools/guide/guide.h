// The tables behind the manual and the completions: commands and configuration keys.
#pragma once

#include <vector>

#include "tools/arguments.h"
#include "tools/guide/completion.h"

namespace motley {

[[nodiscard]] std::vector<CommandSpec> all_specs();
[[nodiscard]] CompletionTable completion_table();

}  // namespace motley
