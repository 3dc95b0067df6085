// Time of day in UTC, for display beside an event.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <optional>
#include <string>

namespace motley {

// "12:03:11". `time_s`: since 1970 UTC. Nothing if it is not a valid calendar time.
[[nodiscard]] inline std::optional<std::string> clock_text(double time_s) {
  constexpr double kTimeMax_s = 1e12;
  if (!(std::abs(time_s) <= kTimeMax_s)) return {};
  const auto seconds = static_cast<std::time_t>(time_s);
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return {};
  return fmt::format("{:02}:{:02}:{:02}", utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace motley
