// The product's own sources, for the tests that check rules on them.
#pragma once

#include <map>
#include <string>

namespace motley {

// All headers and sources of the folders in `kMayInclude`, by "folder/file".
[[nodiscard]] std::map<std::string, std::string> product_sources();

}  // namespace motley
