// Members of messages between launcher and worker, checked. Every error is kCorrupt and names
// `source`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

[[nodiscard]] Error unusable_message(const std::string& source, const std::string& cause);

// From 0 on.
[[nodiscard]] Result<std::int64_t> count_of(const Json& json,
                                            const char* key,
                                            const std::string& source);
[[nodiscard]] Result<std::vector<std::int64_t>> counts_of(const Json& json,
                                                          const char* key,
                                                          const std::string& source);
[[nodiscard]] Result<std::vector<std::string>> names_of(const Json& json,
                                                        const char* key,
                                                        const std::string& source);
// The objects of a list.
[[nodiscard]] Result<std::vector<Json>> objects_of(const Json& json,
                                                   const char* key,
                                                   const std::string& source);

}  // namespace motley
