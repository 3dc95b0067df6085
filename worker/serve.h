// The life cycle of a worker process, independent of its job.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "base/result.h"
#include "pipeline/execute/activity.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// The program-specific part of a worker.
struct WorkerRole {
  // Runs the job that the launcher has sent.
  std::function<Result<void>(Job job, WorkerChannel& channel, Activity& activity)> run_job;
  // The error for an exception that a library threw during the activity named.
  std::function<Error(const std::exception& thrown, const std::string& during)> failure_of;
};

// Sends "hello" to the launcher, receives one job, reports progress while it runs, and then its
// outcome. Returns the exit status. REQUIRES: called once in a process, with the launcher's pipes
// as standard streams.
[[nodiscard]] int serve_launcher(const WorkerRole& worker_role);

// For a program started with arguments by a user: explains how it is started. Returns the exit
// status.
[[nodiscard]] int explain_no_arguments(const std::string& program, const std::string& first);

}  // namespace motley
