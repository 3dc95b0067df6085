// WorkerGroup: the stage processes of one run, from start to the last exit.
//
// Starts each worker through its machine's shell prefix, exchanges addresses, forwards events,
// detects the first failure, and leaves no process behind in any case. One owner thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "cluster/reach/peer_fault.h"
#include "plan/cluster.h"
#include "protocol/protocol.h"

namespace motley {

struct WorkerSpec {
  std::string name;               // "stage 1 (box)": in log prefixes and errors
  Machine machine;                // how to start it
  std::filesystem::path program;  // motley-stage, absolute on that machine
  Job job;
};

struct WorkerGroupOptions {
  double start_timeout_s = 60;  // without any progress before "ready"
  // comm.patience_s. By channel_patience_s() (cluster/lease/channel_patience.h): a worker without
  // any event for that time counts as frozen, and one that receives no message for that time exits.
  double patience_s = 20;
  double renewal_s = 0.5;     // between two lease renewals
  double kill_grace_s = 0.5;  // between the stop request and the kill
  // Each worker's stderr is appended to <folder>/<rank>.log; "" = none.
  std::filesystem::path log_folder;
  // Called with each heartbeat of a worker: bytes done and total bytes of its task.
  std::function<void(int worker, const ProgressBytes& bytes)> on_task;
  // Called before each line that goes to the log, so that a live progress line can erase itself.
  std::function<void()> before_log;
  // If set: once all are ready, the first signal only asks the workers to finish the step and save,
  // and this is called. Another signal, except a duplicate of the first, terminates them at once.
  // If not set: the first signal does.
  std::function<void(const Error& stop)> on_finish;
  // Called before run() returns an error, with the machines that caused it.
  std::function<void(const PeerFault& fault)> on_fault;
};

// Called on the owner's thread for every event of a worker except hello, address, unreached, ready,
// beat and error.
using EventHandler = std::function<Result<void>(int worker, const Json& event)>;

class WorkerGroup {
 public:
  // Starts no process yet.
  WorkerGroup(std::vector<WorkerSpec> workers, WorkerGroupOptions options, const Log& log);
  ~WorkerGroup();  // ends every process that still runs
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts all workers and runs until all are done, or until the first failure, a signal (SIGINT,
  // SIGTERM, SIGHUP) or an error of the handler. When it returns, all processes have ended. The
  // error is the *first* cause (cluster/launch/failure.h): a worker's death, as "<name> was killed
  // by signal 9 (Killed), while it did <its last activity>" (kPeer); its own error event; its stall
  // before it was ready or its silence (kPeer); kInterrupted / kTerminated; machines that cannot
  // connect to each other (cluster/reach/link_diagnosis.h); or kPeer if this program itself was
  // stopped for longer than the leases.
  // REQUIRES: called once.
  [[nodiscard]] Result<void> run(const EventHandler& on_event);

  // Sends a message to one worker, in addition to those of the group itself; no effect once it has
  // ended. REQUIRES: called by the handler of run().
  void send(int worker, const Json& message);

  // Asks all workers to finish the step and save, as a first signal does; run() returns once they
  // have. REQUIRES: called by the handler of run().
  void finish();

  // The time of the last progress of any worker, as now_s(); 0 = none.
  [[nodiscard]] double progress_at_s() const;

  // The signal after which the workers finished, kInterrupted or kTerminated; nothing if none came
  // or if it terminated them at once. REQUIRES: run() has returned.
  [[nodiscard]] const std::optional<Error>& finished_by() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
