// A worker process from its first word to its last, whatever it does in between.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "base/result.h"
#include "pipeline/execute/activity.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// What a program does as a worker.
struct WorkerTrade {
  // Does the job that the launcher has sent.
  std::function<Result<void>(Job job, WorkerChannel& channel, Activity& activity)> run_job;
  // What is said of an exception that a library threw during what the words name.
  std::function<Error(const std::exception& thrown, const std::string& during)> failure_of;
};

// Greets the launcher, takes one job, tells how far it is while it is done, and how it ended.
// Returns the exit status. REQUIRES: called once in a process, whose standard streams are the
// launcher's.
[[nodiscard]] int serve_launcher(const WorkerTrade& trade);

// For a person who starts the program with arguments: says who starts it. The exit status.
[[nodiscard]] int explain_no_arguments(const std::string& program, const std::string& first);

}  // namespace motley
