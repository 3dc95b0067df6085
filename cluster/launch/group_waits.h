// GroupWaits: what a group of workers waits for, until when, and what it means when that does not
// come. One owner thread, that of the group.
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

  // What is lent must outlive it. `warn` tells the person.
  GroupWaits(const Workers& workers,
             const WorkerGroupOptions& options,
             Starter& starter,
             std::function<void(const std::string&)> warn)
      : workers_(workers), options_(options), starter_(starter), warn_(std::move(warn)) {}

  // A worker is ready, or done, that was not before.
  void one_got_further();

  // Whether all were ready.
  [[nodiscard]] bool started() const { return started_; }

  // Until when to wait for what comes next. REQUIRES: no worker has failed.
  [[nodiscard]] Deadline next() const;
  // That time has passed. The failure of workers that are not ready, or were silent; what does not
  // end after it is done is killed. `quiet`: nothing was left to be read, so that the silence is
  // theirs. REQUIRES: no worker has failed.
  [[nodiscard]] std::optional<PeerFailure> passed(bool quiet);

  // While the group is ended: for how many seconds one of those that run may still end by itself; 0
  // where none may. Of one that has been silent for a while, as a frozen one is, that is not to be
  // expected.
  [[nodiscard]] double may_end_alone_s() const;

 private:
  [[nodiscard]] bool all_done() const;

  const Workers& workers_;
  const WorkerGroupOptions& options_;
  Starter& starter_;
  const std::function<void(const std::string&)> warn_;
  bool started_ = false;
  Deadline exit_deadline_ = Deadline::after_s(0);  // meaningful once all are done
};

}  // namespace motley
