#include "watch/view/file_problems.h"

#include <fmt/format.h>

#include <utility>

#include "base/result.h"
#include "watch/view/utc_clock.h"

namespace motley {
namespace {

constexpr std::size_t kAdviceBytesMax = 400;

std::string since(double time_s) {
  const auto clock = clock_text(time_s);
  return clock ? fmt::format("since {} UTC", *clock) : "for some time";
}

// A new launch may have fixed a failure of the previous one.
bool begins_afresh(const RunEvent& event) {
  return event.kind == RunEventKind::kStarted || event.kind == RunEventKind::kResumed;
}

std::optional<FileProblem> failing_saves(const std::deque<RunEvent>& events) {
  const RunEvent* first = nullptr;
  const RunEvent* last = nullptr;
  int failed = 0;
  for (const RunEvent& event : events) {
    if (event.kind == RunEventKind::kCheckpoint || begins_afresh(event)) {
      first = nullptr;
      failed = 0;
    }
    if (event.kind != RunEventKind::kCheckpointFailed) continue;
    if (first == nullptr) first = &event;
    last = &event;
    ++failed;
  }
  if (first == nullptr) return {};
  const std::string what =
      failed == 1 ? fmt::format("the save of step {} failed", first->step)
                  : fmt::format("all {} saves from step {} on failed", failed, first->step);
  return FileProblem{fmt::format("{}, {}", what, since(first->time_s)),
                     excerpt(last->text, kAdviceBytesMax)};
}

// The event's step is the last one in the file at that time; later steps in the file mean that the
// problem is fixed.
std::optional<FileProblem> unwritten_steps(const std::deque<RunEvent>& events,
                                           std::int64_t last_step) {
  const RunEvent* failed = nullptr;
  for (const RunEvent& event : events) {
    if (begins_afresh(event)) failed = nullptr;
    if (event.kind == RunEventKind::kMetricsFailed) failed = &event;
  }
  if (failed == nullptr || last_step > failed->step) return {};
  return FileProblem{
      fmt::format("no step after {} is in metrics.jsonl, {}", failed->step, since(failed->time_s)),
      excerpt(failed->text, kAdviceBytesMax)};
}

}  // namespace

std::vector<FileProblem> file_problems_of(const std::deque<RunEvent>& events,
                                          std::optional<std::int64_t> last_step,
                                          const FolderObservations& folder) {
  std::vector<FileProblem> file_problems;
  if (auto saves = failing_saves(events)) file_problems.push_back(*std::move(saves));
  if (folder.metrics_gone_since_s) {
    file_problems.push_back(
        {"metrics.jsonl was removed, " + since(*folder.metrics_gone_since_s) + " at the latest",
         "the training continues, but its steps are not shown: stop it, and motley train … "
         "--resume writes them again from its newest checkpoint"});
  } else if (auto steps = last_step ? unwritten_steps(events, *last_step) : std::nullopt) {
    if (!folder.disk_full_since_s) steps->advice += "; free space there";
    file_problems.push_back(*std::move(steps));
  }
  if (folder.disk_full_since_s) {
    file_problems.push_back(
        {"the disk of the run's folder is full, " + since(*folder.disk_full_since_s) +
             " at the latest",
         "free space there: steps are buffered in memory, events and saves are lost meanwhile"});
  }
  return file_problems;
}

RunHealth with_problems(RunHealth health, const std::vector<FileProblem>& file_problems) {
  for (const FileProblem& problem : file_problems) {
    if (health.level == HealthLevel::kGood) health.level = HealthLevel::kWatch;
    health.text += "; " + problem.text;
    health.advice += (health.advice.empty() ? "" : "; ") + problem.advice;
  }
  return health;
}

}  // namespace motley
