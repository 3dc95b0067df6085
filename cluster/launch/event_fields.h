// Reads members of workers' events. A worker may be broken or of another version: its values are
// checked before use, and the error names the worker. All errors are kPeer, except json_get's for a
// missing member.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace motley {

// A finite, non-negative number.
[[nodiscard]] Result<double> event_quantity(const Json& event,
                                            const char* key,
                                            const std::string& source);

// An integer in [0, count).
[[nodiscard]] Result<std::size_t> event_index(const Json& event,
                                              const char* key,
                                              std::size_t count,
                                              const std::string& source);

// The error for a member that is well-formed but invalid.
[[nodiscard]] Error event_error(const std::string& source,
                                const std::string& says,
                                const std::string& cause);

}  // namespace motley
