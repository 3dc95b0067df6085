// Starter: brings the workers of a group from nothing to ready: a few at a time where they log in
// through ssh, again those whom a busy sshd turned away, and with an eye on who stands still. A
// worker may load for as long as it gets on with it. One owner thread, that of the group.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/launch/start_gate.h"
#include "cluster/launch/worker.h"
#include "cluster/launch/worker_group.h"
#include "cluster/process/process.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

class Starter {
 public:
  struct Lines {
    std::function<void(const std::string&)> say;
    std::function<void(const std::string&)> warn_once;
  };

  // What is lent must outlive it.
  Starter(std::vector<std::unique_ptr<Worker>>& workers,
          const WorkerGroupOptions& options,
          Lines lines);

  // Starts all whose turn has come.
  [[nodiscard]] Result<void> start_due();

  // The worker has said its first word.
  void greeted(const Worker& worker) { gate_.leave(worker.spec().machine.shell); }

  // Whether a worker that has ended so is to be started once more, which then happens by itself.
  [[nodiscard]] bool starts_again(Worker& worker, const ProcessExit& exit);
  // Everybody's address is known, so that those who waited for the others go on.
  void addresses_sent();

  // Seconds until start_due() or look() has something to do; never negative.
  [[nodiscard]] double idle_s() const;
  // Reports the progress of workers that load for long. The failure when one stands still.
  [[nodiscard]] std::optional<PeerFailure> look();

 private:
  // Whether it is this worker's turn to get on: it was started, is not ready, and does not wait for
  // the addresses of others.
  [[nodiscard]] bool is_due(const Worker& worker) const;
  void limit_cpu(Worker& worker);
  // What is told of workers that did not get ready in time.
  [[nodiscard]] PeerFailure standstill(const std::vector<const Worker*>& late) const;

  std::vector<std::unique_ptr<Worker>>& workers_;
  const WorkerGroupOptions& options_;
  const Lines lines_;
  StartGate gate_;
  bool addresses_sent_ = false;
  double told_at_s_;  // how far the others are
};

}  // namespace motley
