// Responses to admitted requests. No path maps to a file: the page's parts are compiled in,
// everything else comes from the run.
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

// The only path with an unbounded response (watch/http/live_feed.h).
inline constexpr std::string_view kLivePath = "/api/live";

// `accept`: the request's Accept field; metrics have two formats. REQUIRES: the path is not
// kLivePath.
[[nodiscard]] Answer answer(const Admitted& request, std::string_view accept, RunSource& source);

// {"error", "cause", "remedy"}.
[[nodiscard]] std::string error_json(const Error& error);

[[nodiscard]] Answer refusal(const Refused& refused);

}  // namespace motley
