// Which of several failures was the first cause, and what is said about it. Pure functions.
//
// When one worker is lost, the others notice within milliseconds and report *that*; their reports
// can even arrive before the news of the death. So failures are gathered for a short while after
// the first sign and then ranked by what they can know, not by the order of their arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/process/process.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

enum class FailureKind {
  kCertain,   // a death without a word, or an error that no lost peer explains
  kUnclear,   // kInternal: may be what the loss of a peer looks like in some library
  kPeerLost,  // kPeer: says that another worker is gone
};

struct Failure {
  FailureKind kind = FailureKind::kCertain;
  Error error;
  int worker = 0;  // who reported it, or ended
};

// The kind of an error that a worker reports.
[[nodiscard]] FailureKind failure_kind(const Error& reported);

// Index of the first cause: by kind in the order above, and within a kind the one seen first.
// REQUIRES: failures is not empty and in the order of their arrival.
[[nodiscard]] std::size_t first_cause(std::span<const Failure> failures);

// What a worker last told us about itself.
struct WorkerActivity {
  bool ready = false;
  std::int64_t step = 0;  // 0 = unknown
  std::string doing;      // "forward of micro-batch 3"
  std::string task;       // "loading parameters: 3.2 of 20.1 GB"; mostly empty
};

// "while it did forward of micro-batch 3 of step 12", "after step 12", "before it was ready,
// loading parameters: 3.2 of 20.1 GB".
[[nodiscard]] std::string describe_activity(const WorkerActivity& activity);

// A worker as a person knows it.
struct Identity {
  std::string name;     // "stage 1 (box)"
  std::string machine;  // "box"
  bool trains = true;   // else it has no steps to tell of, and its command can be run again
  bool ssh = false;     // started through it, which has exit statuses of its own
  bool greeted = true;  // its first word has come, so there was a connection, and a program
};

// The error for a worker that ended without an error event, perhaps because it heard nothing of us.
// How a training goes on is left to the run. `last_lines` are the end of its stderr.
[[nodiscard]] Error describe_death(const Identity& who,
                                   const ProcessExit& exit,
                                   const WorkerActivity& activity,
                                   const std::vector<std::string>& last_lines);

// The error where workers were lost while this program itself did not run for `absent_s`, which
// explains the loss. `found`: what was found afterwards.
[[nodiscard]] Error own_absence(double absent_s, const Error& found);

// Of a run whose failures tell only that workers were lost: names the workers that others report
// as lost and that reported nothing themselves, by their machine where none of it is left; or two
// that lost each other. Nothing where `failures` say no such thing.
// REQUIRES: failures are of kind kPeerLost, in the order of their arrival; all vectors by worker.
[[nodiscard]] std::optional<PeerFailure> describe_loss(
    std::span<const Failure> failures,
    const std::vector<Identity>& workers,
    const std::vector<WorkerActivity>& activities);

// `text` with "stage 1 (box)" for each "rank 1" of a worker: ranks are what workers call each
// other.
[[nodiscard]] std::string with_names(std::string text, const std::vector<Identity>& workers);

}  // namespace motley
