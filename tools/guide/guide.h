// What the tables of this program say of it: its commands and its configuration keys.
#pragma once

#include <vector>

#include "tools/arguments.h"
#include "tools/guide/completion.h"

namespace motley {

[[nodiscard]] std::vector<CommandSpec> all_specs();
[[nodiscard]] CompletionTable completion_table();

}  // namespace motley
