// Selects the first cause among several failures, and describes it. Pure functions.
//
// When one worker is lost, the others notice within milliseconds and report it; their reports may
// even arrive before the death itself is detected. So failures are collected for a short time after
// the first one, and then ranked by kind instead of order of arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process/process.h"
#include "base/result.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

enum class FailureKind {
  kCertain,   // a death without an error event, or an error that no lost peer explains
  kUnclear,   // kInternal: a library may report the loss of a peer this way
  kPeerLost,  // kPeer: reports that another worker is gone
};

struct Failure {
  FailureKind kind = FailureKind::kCertain;
  Error error;
  int worker = 0;  // index of the worker that reported it or ended
};

// The kind of an error that a worker reports.
[[nodiscard]] FailureKind failure_kind(const Error& reported);

// Index of the first cause: by kind in the order above, and within a kind the earliest.
// REQUIRES: failures is not empty and in the order of arrival.
[[nodiscard]] std::size_t first_cause(std::span<const Failure> failures);

// A worker's activity, as it last reported it.
struct WorkerActivity {
  bool ready = false;
  std::int64_t step = 0;       // 0 = unknown
  std::string current_action;  // "forward of micro-batch 3"
  std::string task;            // "loading parameters: 3.2 of 20.1 GB"; mostly empty
};

// "while it did forward of micro-batch 3 of step 12", "after step 12", "before it was ready,
// loading parameters: 3.2 of 20.1 GB".
[[nodiscard]] std::string describe_activity(const WorkerActivity& activity);

// A worker in messages to the user.
struct WorkerIdentity {
  std::string name;     // "stage 1 (box)"
  std::string machine;  // "box"
  bool trains = true;   // else it has no steps to report, and its command can be run again
  bool ssh = false;     // started through ssh, which has exit statuses of its own
  bool greeted = true;  // its hello event arrived, so connection and program worked
};

// The error for a worker that ended without an error event, for example because its lease expired.
// The hint on how to resume a training is left to the run. `last_lines` are the end of its stderr.
[[nodiscard]] Error describe_death(const WorkerIdentity& identity,
                                   const ProcessExit& exit,
                                   const WorkerActivity& activity,
                                   const std::vector<std::string>& last_lines);

// The error for workers lost while the launcher itself did not run for `absent_s`, which explains
// the loss. `found`: the error found afterwards.
[[nodiscard]] Error own_absence(double absent_s, const Error& found);

// For failures that only report lost workers: names the first worker that another reports as lost
// and that reported nothing itself, by its machine if no other worker of that machine reported. If
// there is none, names two workers that lost each other. Nothing if `failures` name no lost worker.
// REQUIRES: failures are of kind kPeerLost, in the order of arrival; all vectors by worker.
[[nodiscard]] std::optional<PeerFailure> describe_loss(
    std::span<const Failure> failures,
    const std::vector<WorkerIdentity>& workers,
    const std::vector<WorkerActivity>& activities);

// `text` with "stage 1 (box)" for each "rank 1": workers name each other by rank.
[[nodiscard]] std::string with_names(std::string text, const std::vector<WorkerIdentity>& workers);

}  // namespace motley
