#include "watch/http/live_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "watch/http/answers.h"

namespace motley {
namespace {

constexpr std::size_t kPointsSent = 2000;
constexpr std::size_t kEventsSent = 50;
constexpr double kFresh_s = 0.5;

// The browser's reconnection delay in milliseconds.
constexpr std::string_view kOpening = "retry: 1000\n\n";
constexpr std::string_view kHeartbeat = ": still here\n\n";

std::int64_t step_of(std::string_view id) {
  std::int64_t step = 0;
  const auto [stopped, failure] = std::from_chars(id.data(), id.data() + id.size(), step);
  return failure == std::errc() && stopped == id.data() + id.size()
             ? std::max(step, std::int64_t{0})
             : 0;
}

// The description, or the reason why the run cannot be read; the page then shows it beside the last
// data.
std::string description_message(RunSource& source) {
  const auto data = source.part(RunDocument::kDescription);
  return data.ok() ? live_message("description", *data)
                   : live_message("unreadable", error_json(data.error()));
}

// Other parts that cannot be read now are sent with the next change.
std::string message_of(std::string_view event, const Result<std::string>& data) {
  return data.ok() ? live_message(event, *data) : std::string();
}

}  // namespace

std::string live_message(std::string_view event, std::string_view data, std::string_view id) {
  std::string message = fmt::format("event: {}\n", event);
  if (!id.empty()) message += fmt::format("id: {}\n", id);
  for (std::size_t at = 0; at <= data.size();) {
    const std::size_t end = std::min(data.find_first_of("\r\n", at), data.size());
    message += fmt::format("data: {}\n", data.substr(at, end - at));
    at = end + 1;
  }
  return message + '\n';
}

std::string LiveFeed::steps_message(std::int64_t after_step, std::int64_t last_step) {
  auto columns = source_.history(kPointsSent, after_step);
  if (!columns.ok()) return {};
  std::string text = std::move(columns).value();
  if (after_step == 0 && text.starts_with("{\"")) text.insert(1, "\"whole\":true,");
  return live_message("steps", text, std::to_string(last_step));
}

std::string LiveFeed::news(const RunChanges& changes) {
  std::string news;
  if (changes.description) {
    news += description_message(source_);
  }
  const bool whole = changes.cut || changes.last_step < last_step_;
  if (whole || changes.last_step > last_step_) {
    const std::string steps = steps_message(whole ? 0 : last_step_, changes.last_step);
    if (!steps.empty()) last_step_ = changes.last_step;
    news += steps;
  }
  if (changes.state) news += message_of("state", source_.part(RunDocument::kState));
  if (changes.events) news += message_of("events", source_.events(kEventsSent));
  if (changes.timeline) news += live_message("timeline", "{}");
  return news;
}

void LiveFeed::gather() {
  fresh_ = Deadline::after_s(kFresh_s);
  const RunChanges found = source_.look();
  pending_changes_.description |= found.description;
  pending_changes_.state |= found.state;
  pending_changes_.events |= found.events;
  pending_changes_.timeline |= found.timeline;
  pending_changes_.cut |= found.cut;
  pending_changes_.last_step = found.last_step;
  has_more_ = found.has_more;
}

bool LiveFeed::look() {
  gather();
  const RunChanges changes = std::exchange(pending_changes_, {});
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  if (streams_.empty()) {
    last_step_ = changes.last_step;
    return false;
  }
  std::string text = news(changes);
  if (text.empty()) return false;
  send_all(std::move(text));
  return true;
}

void LiveFeed::refresh() {
  if (fresh_.passed()) look();
}

void LiveFeed::add(const std::shared_ptr<LiveStream>& stream, std::string_view last_event_id) {
  look();  // existing streams first, so that all have the same steps
  std::int64_t had = step_of(last_event_id);
  if (had > last_step_) had = 0;  // its steps were replaced
  std::string all(kOpening);
  all += description_message(source_);
  if (had == 0 || had < last_step_) all += steps_message(had, last_step_);
  all += message_of("state", source_.part(RunDocument::kState));
  all += message_of("events", source_.events(kEventsSent));
  all += live_message("timeline", "{}");
  stream->send(std::make_shared<const std::string>(std::move(all)));
  streams_.push_back(stream);
}

void LiveFeed::tick() {
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  if (streams_.empty()) return;
  if (!look() && heartbeat_.passed()) send_all(std::string(kHeartbeat));
  const auto now = SteadyClock::now();
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->check(now);
  }
}

void LiveFeed::send_all(std::string text) {
  heartbeat_ = Deadline::after_s(heartbeat_s_);
  const auto shared = std::make_shared<const std::string>(std::move(text));
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->send(shared);
  }
}

}  // namespace motley
