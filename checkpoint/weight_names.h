// The names under which files may store a parameter of a model.
#pragma once

#include <string>
#include <vector>

namespace motley {

// The name itself, with "transformer." or "model." in front, or without: programs differ in whether
// they save a model's body under such a prefix. A tensor of any of these names is the parameter.
[[nodiscard]] std::vector<std::string> weight_name_forms(const std::string& name);

// The name without such a prefix.
[[nodiscard]] std::string bare_weight_name(const std::string& name);

}  // namespace motley
