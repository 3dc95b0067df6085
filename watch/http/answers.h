// What is answered to a request that was admitted. No path is ever that of a file: the pages' parts
// are compiled in, the rest is asked of the run.
#pragma once

#include <string>
#include <string_view>

#include "watch/http/admission.h"
#include "watch/http/run_source.h"

namespace motley {

struct Answer {
  unsigned status = 200;
  std::string_view type = "application/json";
  std::string body;
};

// The one path whose answer does not end (watch/http/live_feed.h).
inline constexpr std::string_view kLivePath = "/api/live";

// `accept`: what the request says that it takes; metrics come in two formats. REQUIRES: the path is
// not kLivePath.
[[nodiscard]] Answer answer(const Admitted& request, std::string_view accept, RunSource& source);

// {"error", "cause", "remedy"}.
[[nodiscard]] std::string error_json(const Error& error);

[[nodiscard]] Answer refusal(const Refused& refused);

}  // namespace motley
