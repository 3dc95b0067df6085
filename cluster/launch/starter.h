// Starter: starts the workers of a group and monitors them until they are ready. It limits parallel
// ssh logins, retries those that a busy sshd rejected, and detects a stalled start. A worker may
// load for as long as it makes progress. One owner thread, that of the group.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/process.h"
#include "base/result.h"
#include "cluster/launch/start_gate.h"
#include "cluster/launch/worker.h"
#include "cluster/launch/worker_group.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

class Starter {
 public:
  // All references are borrowed and must outlive the object. `say` displays a line.
  Starter(std::vector<std::unique_ptr<Worker>>& workers,
          const WorkerGroupOptions& options,
          std::function<void(const std::string&)> say);

  // Starts all workers that are due.
  [[nodiscard]] Result<void> start_due();

  // Called for a worker's hello event.
  void greeted(const Worker& worker) { gate_.leave(worker.spec().machine.shell); }

  // Whether a worker with this exit is to be started again; start_due() then does so.
  [[nodiscard]] bool starts_again(Worker& worker, const ProcessExit& exit);
  // Called once all addresses are known, so that workers waiting for them continue.
  void addresses_sent();

  // Seconds until start_due() or look() is due; never negative.
  [[nodiscard]] double idle_s() const;
  // Reports the progress of workers that load for long. Returns the failure if one stalls.
  [[nodiscard]] std::optional<PeerFailure> look();

 private:
  // Whether progress is expected of this worker: it was started, is not ready, and does not wait
  // for the addresses of others.
  [[nodiscard]] bool is_due(const Worker& worker) const;
  // The failure for workers that did not get ready in time.
  [[nodiscard]] PeerFailure standstill(const std::vector<const Worker*>& late) const;

  std::vector<std::unique_ptr<Worker>>& workers_;
  const WorkerGroupOptions& options_;
  const std::function<void(const std::string&)> say_;
  StartGate gate_;
  bool addresses_sent_ = false;
  double reported_at_s_;  // time of the last progress report
};

}  // namespace motley
