#include "cluster/launch/event_fields.h"

#include <fmt/format.h>

#include <cmath>

namespace motley {

Error event_error(const std::string& source, const std::string& says, const std::string& cause) {
  return {ErrorCode::kPeer, fmt::format("malformed event of {}: {}", source, says), cause,
          "use the same version of Motley on every machine"};
}

Result<double> event_quantity(const Json& event, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(const double value, json_get<double>(event, key, source));
  if (std::isfinite(value) && value >= 0) return value;
  return event_error(source, fmt::format("{} = {}", key, value), "it is negative or not finite");
}

Result<std::size_t> event_index(const Json& event,
                                const char* key,
                                std::size_t count,
                                const std::string& source) {
  MOTLEY_ASSIGN(const std::int64_t value, json_get<std::int64_t>(event, key, source));
  if (value >= 0 && value < static_cast<std::int64_t>(count)) {
    return static_cast<std::size_t>(value);
  }
  return event_error(source, fmt::format("{} = {}", key, value),
                     fmt::format("there are {}, counted from 0", count));
}

}  // namespace motley
