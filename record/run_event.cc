#include "record/run_event.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/json_position.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

constexpr std::array<const char*, 10> kKindWords = {
    "started", "resumed",   "checkpoint", "checkpoint_failed", "metrics_failed",
    "lost",    "restarted", "replanned",  "warning",           "ended"};  // [RunEventKind]
constexpr double kTimeMax_s = 1e12;
constexpr std::int64_t kEventStepMax = std::int64_t{1} << 52;

}  // namespace

const char* run_event_word(RunEventKind kind) {
  return kKindWords[static_cast<std::size_t>(kind)];
}

Json run_event_to_json(const RunEvent& event) {
  Json json = {{"time", event.time_s},
               {"step", event.step},
               {"kind", run_event_word(event.kind)},
               {"text", event.text}};
  if (!event.machine.empty()) json["machine"] = event.machine;
  return json;
}

Result<RunEvent> run_event_from_json(const Json& json, const std::string& source) {
  const JsonSource place(source);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  RunEvent event;
  MOTLEY_ASSIGN(event.time_s, fields.quantity("time", kTimeMax_s));
  MOTLEY_ASSIGN(event.step, fields.integer("step", 0, kEventStepMax));
  MOTLEY_ASSIGN(const std::string word, fields.text("kind"));
  const auto known = std::ranges::find(kKindWords, std::string_view(word),
                                       [](const char* w) { return std::string_view(w); });
  if (known == kKindWords.end()) return fields.bad("kind", "unknown kind of event");
  event.kind = static_cast<RunEventKind>(known - kKindWords.begin());
  MOTLEY_ASSIGN(event.text, fields.text("text"));
  if (fields.has("machine")) {
    MOTLEY_ASSIGN(event.machine, fields.word("machine", kMachineNameOthers));
  }
  return event;
}

}  // namespace motley
