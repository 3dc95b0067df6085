#include "watch/http/answers.h"

#include "base/json.h"
#include "watch/page/page_parts.h"

namespace motley {
namespace {

constexpr std::uint64_t kPoints = 1000;
constexpr std::uint64_t kPointsMax = 10000;
constexpr std::uint64_t kEvents = 50;
constexpr std::uint64_t kEventsMax = 1000;

Answer of_run(Result<std::string> text, std::string_view type = "application/json") {
  if (text.ok()) return {200, type, std::move(text).value()};
  return {503, "application/json", error_json(text.error())};
}

// Calls `ask` with the number under `key` in the query.
template <class Ask>
Answer with_number(const Admitted& request,
                   std::string_view key,
                   std::uint64_t fallback,
                   std::uint64_t high,
                   const Ask& ask) {
  const auto number = number_of_query(request.query, key, fallback, 1, high);
  if (const auto* refused = std::get_if<Refused>(&number)) return refusal(*refused);
  return of_run(ask(std::get<std::uint64_t>(number)));
}

}  // namespace

std::string error_json(const Error& error) {
  const Json body{{"error", error.what}, {"cause", error.cause}, {"remedy", error.remedy}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Answer refusal(const Refused& refused) {
  return {refused.status, "text/plain; charset=utf-8", refused.why + "\n"};
}

Answer answer(const Admitted& request, std::string_view accept, RunSource& source) {
  const std::string& path = request.path;
  if (path == "/api/description") return of_run(source.part(RunDocument::kDescription));
  if (path == "/api/state") return of_run(source.part(RunDocument::kState));
  if (path == "/api/timeline") return of_run(source.part(RunDocument::kTimeline));
  if (path == "/api/history") {
    return with_number(request, "points", kPoints, kPointsMax,
                       [&](std::uint64_t points) { return source.history(points, 0); });
  }
  if (path == "/api/events") {
    return with_number(request, "n", kEvents, kEventsMax,
                       [&](std::uint64_t newest) { return source.events(newest); });
  }
  if (path == "/metrics") {
    const MetricsFormat format = metrics_format_for(accept);
    return of_run(source.metrics(format), content_type(format));
  }
  if (const PagePart* part = find_page_part(path)) {
    return {200, part->type, std::string(part->text)};
  }
  return refusal({404, "not found"});
}

}  // namespace motley
