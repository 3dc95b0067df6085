// Members of workers' events. A worker may be broken or of another version: what it says is checked
// before use, and the error names it. kPeer in every case but a missing member, which is
// json_get's.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace motley {

// A finite number that is not negative.
[[nodiscard]] Result<double> event_quantity(const Json& event,
                                            const char* key,
                                            const std::string& source);

// A whole number below `count`.
[[nodiscard]] Result<std::size_t> event_index(const Json& event,
                                              const char* key,
                                              std::size_t count,
                                              const std::string& source);

// The error for a member that can be read and makes no sense.
[[nodiscard]] Error event_error(const std::string& source,
                                const std::string& says,
                                const std::string& cause);

}  // namespace motley
