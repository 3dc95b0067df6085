// Which of several failures was the first cause, and what is said about it. Pure functions.
//
// When one worker is lost, the others notice within milliseconds and report *that*; their reports
// can even arrive before the news of the death. So failures are gathered for a short while after
// the first sign and then ranked by what they can know, not by the order of their arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/process/process.h"

namespace motley {

enum class FailureKind {
  kCertain,   // a death without a word, or an error that no lost peer explains
  kUnclear,   // kInternal: may be what the loss of a peer looks like in some library
  kPeerLost,  // kPeer: says that another worker is gone
};

struct Failure {
  FailureKind kind = FailureKind::kCertain;
  Error error;
};

// The kind of an error that a worker reports.
[[nodiscard]] FailureKind failure_kind(const Error& reported);

// Index of the first cause: by kind in the order above, and within a kind the one seen first.
// REQUIRES: failures is not empty and in the order of their arrival.
[[nodiscard]] std::size_t first_cause(std::span<const Failure> failures);

// What a worker last told us about itself.
struct Activity {
  bool ready = false;
  std::int64_t step = 0;  // 0 = unknown
  std::string doing;      // "forward of micro-batch 3"
  std::string task;       // "loading parameters: 3.2 of 20.1 GB"; mostly empty
};

// "while it did forward of micro-batch 3 of step 12", "after step 12", "before it was ready,
// loading parameters: 3.2 of 20.1 GB".
[[nodiscard]] std::string describe_activity(const Activity& activity);

// The error for a worker that ended without an error event, perhaps because it heard nothing of us.
// One that does not train has no steps to tell of, and its command can be run again; how a training
// goes on is left to the run. `ssh` tells whether it was
// started through ssh, which has exit statuses of its own; `last_lines` are the end of its stderr.
[[nodiscard]] Error describe_death(const std::string& name,
                                   const ProcessExit& exit,
                                   const Activity& activity,
                                   bool trains,
                                   bool ssh,
                                   const std::vector<std::string>& last_lines);

}  // namespace motley
