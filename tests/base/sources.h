// The product's own sources, for the tests that check rules on them.
#pragma once

#include <map>
#include <set>
#include <string>

namespace motley {

// All headers and sources of the folders in `kMayInclude`, by "folder/file".
[[nodiscard]] std::map<std::string, std::string> product_sources();

// The modules that each module links directly, by name, from the CMakeLists.txt of these folders.
[[nodiscard]] std::map<std::string, std::set<std::string>> module_links();

}  // namespace motley
