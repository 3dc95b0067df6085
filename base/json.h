// The one JSON type of the project. Headers of modules include base/json_fwd.h instead.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"

#include <nlohmann/json.hpp>

namespace motley {

// Parses untrusted JSON text. `source` names it in errors. kCorrupt with line and column on bad
// syntax, on nesting deeper than 32 levels, and on a duplicate key in an object.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const std::string& source);

// A member of an object, type-checked. kCorrupt, naming `source` and the key, if the member is
// missing, has another type or is out of range. Instantiated for bool, std::int64_t, double
// (accepts integers) and std::string.
template <class T>
[[nodiscard]] Result<T> json_get(const Json& object, const char* key, const std::string& source);

}  // namespace motley
