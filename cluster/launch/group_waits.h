// GroupWaits: the deadlines of a group of workers, and the failure if one passes. One owner thread,
// that of the group.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/launch/starter.h"
#include "cluster/launch/worker.h"
#include "cluster/launch/worker_group.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

class GroupWaits {
 public:
  using Workers = std::vector<std::unique_ptr<Worker>>;

  // All references are borrowed and must outlive the object. `warn` reports to the user.
  GroupWaits(const Workers& workers,
             const WorkerGroupOptions& options,
             Starter& starter,
             std::function<void(const std::string&)> warn)
      : workers_(workers), options_(options), starter_(starter), warn_(std::move(warn)) {}

  // To be called when a worker has become ready or done.
  void record_worker_progress();

  // Whether all were ready.
  [[nodiscard]] bool started() const { return started_; }

  // The deadline of the next expected event. REQUIRES: no worker has failed.
  [[nodiscard]] Deadline next() const;
  // To be called after that deadline. Returns the failure of workers that are not ready in time or
  // were silent; kills workers that are done but do not exit. `quiet`: all input was read, so the
  // workers were really silent. REQUIRES: no worker has failed.
  [[nodiscard]] std::optional<PeerFailure> passed(bool quiet);

  // To be called for each event of a worker.
  void note_heard(Worker& worker) const;

  // While the group is shut down: for how many seconds a running worker may still exit by itself; 0
  // if none may. A worker that has been silent for a while, as a frozen one is, is not waited for.
  [[nodiscard]] double may_end_alone_s() const;

 private:
  [[nodiscard]] bool all_done() const;
  void report_silence(Worker& worker, double silent_s) const;

  const Workers& workers_;
  const WorkerGroupOptions& options_;
  Starter& starter_;
  const std::function<void(const std::string&)> warn_;
  bool started_ = false;
  Deadline exit_deadline_ = Deadline::after_s(0);  // meaningful once all are done
};

}  // namespace motley
