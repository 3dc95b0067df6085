// Validated members of messages between launcher and worker. Every error is kCorrupt and names
// `source`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

[[nodiscard]] Error unusable_message(const std::string& source, const std::string& cause);

// At least 0.
[[nodiscard]] Result<std::int64_t> count_of(const Json& json,
                                            const char* key,
                                            const std::string& source);
[[nodiscard]] Result<std::vector<std::int64_t>> counts_of(const Json& json,
                                                          const char* key,
                                                          const std::string& source);
[[nodiscard]] Result<std::vector<std::string>> names_of(const Json& json,
                                                        const char* key,
                                                        const std::string& source);
// A list of objects.
[[nodiscard]] Result<std::vector<Json>> objects_of(const Json& json,
                                                   const char* key,
                                                   const std::string& source);

}  // namespace motley
