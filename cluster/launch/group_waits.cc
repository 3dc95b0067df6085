#include "cluster/launch/group_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cluster/launch/failure.h"

namespace motley {
namespace {

// From the last "done" to the exit of all: the time a process needs to shut down.
constexpr double kExitAfterDone_s = 5;
// Four times the interval of two heartbeats.
constexpr double kNoLongerHeard_s = 1;
// Shorter silences are common on Wi-Fi and busy machines.
constexpr double kReportSilence_s = 5;

}  // namespace

bool GroupWaits::all_done() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->done; });
}

void GroupWaits::record_worker_progress() {
  if (all_done()) exit_deadline_ = Deadline::after_s(kExitAfterDone_s);
  const bool all_ready =
      std::ranges::all_of(workers_, [](const auto& worker) { return worker->activity.ready; });
  if (!all_ready || std::exchange(started_, true)) return;
  for (const auto& worker : workers_) note_heard(*worker);
}

Deadline GroupWaits::next() const {
  if (!started_) return Deadline::after_s(starter_.idle_s());
  if (all_done()) return exit_deadline_;
  double left_s = kReportSilence_s;
  for (const auto& worker : workers_) {
    if (worker->done) continue;
    const double limit_s = worker->patience_s(options_.patience_s);
    const double due_s = worker->silence_reported ? limit_s : std::min(limit_s, kReportSilence_s);
    left_s = std::min(left_s, worker->heard_at_s + due_s - now_s());
  }
  return Deadline::after_s(std::max(0.0, left_s));
}

std::optional<PeerFailure> GroupWaits::passed(bool quiet) {
  if (!started_) {
    if (!quiet) return {};
    return starter_.look();
  }
  if (all_done()) {
    for (const auto& worker : workers_) {
      if (worker->running()) warn_(fmt::format("{} did not exit in time", worker->spec().name));
      worker->kill();
    }
    exit_deadline_ = Deadline::after_s(kExitAfterDone_s);
    return {};
  }
  // Events that arrived during a slow handler (a checkpoint on a slow disk) are still unread.
  if (!quiet) return {};
  for (const auto& worker : workers_) {
    if (worker->done) continue;
    const double limit_s = worker->patience_s(options_.patience_s);
    const double silent_s = now_s() - worker->heard_at_s;
    if (silent_s < limit_s) {
      report_silence(*worker, silent_s);
      continue;
    }
    return PeerFailure{
        {ErrorCode::kPeer,
         fmt::format("{} sent no heartbeat for {:g} s, {}", worker->spec().name, limit_s,
                     describe_activity(worker->activity)),
         "its process is frozen, or its machine sleeps, is overloaded or lost its network",
         "wake the machine or check its network"},
        {.machines = {worker->spec().machine.name}}};
  }
  return {};
}

void GroupWaits::report_silence(Worker& worker, double silent_s) const {
  if (silent_s < kReportSilence_s || std::exchange(worker.silence_reported, true)) return;
  warn_(fmt::format("{} has been silent for {:.0f} s; the run waits for it", worker.spec().name,
                    silent_s));
}

void GroupWaits::note_heard(Worker& worker) const {
  const double silent_s = now_s() - std::exchange(worker.heard_at_s, now_s());
  if (!std::exchange(worker.silence_reported, false)) return;
  warn_(fmt::format("{} answers again, after {:.0f} s", worker.spec().name, silent_s));
}

double GroupWaits::may_end_alone_s() const {
  double longest_s = 0;
  for (const auto& worker : workers_) {
    if (!worker->running()) continue;
    longest_s = std::max(longest_s, worker->heard_at_s + kNoLongerHeard_s - now_s());
  }
  return longest_s;
}

}  // namespace motley
