// Json without the cost of its full header.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace motley {

using Json = nlohmann::ordered_json;  // keeps the order of keys, so equal values print equally

}  // namespace motley
