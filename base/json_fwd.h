// Declares Json without the compile time of its full header.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace motley {

using Json = nlohmann::ordered_json;  // preserves key order, so equal values print equally

}  // namespace motley
