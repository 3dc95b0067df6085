// WorkerGroup: the stage processes of one run, from start to the last exit.
//
// Starts each worker through its machine's shell prefix, exchanges addresses, hands on their
// events, notices the first that fails, and leaves no process behind, whatever happens. One owner
// thread.
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
#include "base/result.h"
#include "base/work_counter.h"
#include "cluster/reach/peer_fault.h"
#include "plan/cluster.h"
#include "protocol/protocol.h"

namespace motley {

struct WorkerSpec {
  std::string name;               // "stage 1 (box)": in log prefixes and errors
  Machine machine;                // how to start it; cpu_share is applied where the system lets us
  std::filesystem::path program;  // motley-stage, absolute on that machine
  Job job;
};

struct WorkerGroupOptions {
  double start_timeout_s = 60;   // without any progress before "ready"
  double silence_timeout_s = 8;  // without any event, a worker counts as frozen
  double lease_s = 8;            // a worker that hears nothing of us for so long ends by itself
  double renewal_s = 0.5;        // between two words to each worker
  double kill_grace_s = 0.5;     // from asking a worker to end to killing it
  std::filesystem::path
      log_folder;  // each worker's stderr is added to <folder>/<rank>.log; "" = none
  // Called with each beat of a worker: how many bytes of how many its task has done so far.
  std::function<void(int worker, const WorkBytes& bytes)> on_task;
  // Called before each line that goes to the log; a live progress line clears itself here.
  std::function<void()> before_log;
  // Set: once all are ready, the first signal only asks the workers to finish what they do and to
  // save, and is told here; another one, but for the same moment's, ends them at once. Not set: the
  // first one does.
  std::function<void(const Error& stop)> on_finish;
  // Called before run() returns an error, with what is known of its cause.
  std::function<void(const PeerFault& fault)> on_fault;
};

// Called on the owner's thread for every event of a worker but hello, address, unreached, ready,
// beat and error.
using EventHandler = std::function<Result<void>(int worker, const Json& event)>;

class WorkerGroup {
 public:
  // Starts nothing yet.
  WorkerGroup(std::vector<WorkerSpec> workers, WorkerGroupOptions options, const Log& log);
  ~WorkerGroup();  // ends every process that still runs
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts all, runs until all are done, or the first failure, or a signal (SIGINT, SIGTERM), or
  // the handler's error. In every case all processes have ended when it returns, and the *first*
  // cause is what it returns (cluster/launch/failure.h): a worker's death, as "<name> was killed by
  // signal 9 (Killed), while it did <what it last said>" (kPeer), or its own error event, or its
  // standstill before it was ready, or its silence (kPeer), or kInterrupted / kTerminated; or
  // machines that cannot connect to each other (cluster/reach/link_verdict.h); or kPeer where this
  // program itself was stopped for longer than workers wait.
  // REQUIRES: called once.
  [[nodiscard]] Result<void> run(const EventHandler& on_event);

  // A message to one worker, beside those that the group itself sends; nothing where it has ended.
  // REQUIRES: called by the handler of run().
  void send(int worker, const Json& message);

  // Asks all workers to finish what they do and to save, as a first signal does; run() then returns
  // once they have. REQUIRES: called by the handler of run().
  void finish();

  // When one of them last got on, as now_s(); 0 = none has.
  [[nodiscard]] double got_on_at_s() const;

  // The signal after which the workers finished what they did, kInterrupted or kTerminated; nothing
  // where none came or where it ended them at once. REQUIRES: run() has returned.
  [[nodiscard]] const std::optional<Error>& finished_by() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
