// Under which names a parameter of a model may lie in files.
#pragma once

#include <string>
#include <vector>

namespace motley {

// The name itself, and as the programs save it that put "transformer." or "model." before all names
// of a model's body, or leave that out: what a file holds under one of them is the parameter.
[[nodiscard]] std::vector<std::string> weight_name_forms(const std::string& name);

// The name without such a word before it.
[[nodiscard]] std::string bare_weight_name(const std::string& name);

}  // namespace motley
