// The one JSON type of the project. Headers of modules include base/json_fwd.h instead.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"

#include <nlohmann/json.hpp>

namespace motley {

// Parses untrusted JSON text. `source` names it in errors. kCorrupt with line and column on bad
// syntax, when nested deeper than 32 levels, and when an object has a key twice.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const std::string& source);

// A typed member of an object, checked. kCorrupt, naming `source` and the key, when the member is
// missing, of another type or too large for it. Instantiated for bool, std::int64_t, double
// (accepts integers) and std::string.
template <class T>
[[nodiscard]] Result<T> json_get(const Json& object, const char* key, const std::string& source);

}  // namespace motley
