// GroupEvents: handles the events that the workers of a group send. One owner thread, that of the
// group.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "cluster/launch/failure.h"
#include "cluster/launch/group_failures.h"
#include "cluster/launch/group_waits.h"
#include "cluster/launch/starter.h"
#include "cluster/launch/worker.h"
#include "cluster/launch/worker_group.h"
#include "cluster/lease/lease_renewer.h"

namespace motley {

class GroupEvents {
 public:
  // The parts of a group, which an event may concern. All are borrowed and must outlive the object.
  struct Group {
    const std::vector<std::unique_ptr<Worker>>& workers;
    const WorkerGroupOptions& options;
    Starter& starter;
    GroupWaits& waits;
    GroupFailures& failures;
    std::optional<LeaseRenewer>& renewer;  // while the group runs
    std::function<void(const std::string&)> warn;
  };

  // `on_event` must outlive the object; it gets what the group itself does not handle.
  GroupEvents(Group group, const EventHandler& on_event)
      : group_(std::move(group)), on_event_(on_event) {}

  // An error ends the run: the handler's, or that of machines that cannot connect. Failures of the
  // worker are added to the group's.
  [[nodiscard]] Result<void> handle(Worker& worker, const Json& event);

  // Adds a failure of the worker, whose events then no longer count.
  void fail(Worker& worker, FailureKind kind, Error error);

 private:
  Result<void> handle_unreached(Worker& worker, const Json& event);
  Result<void> hand_on(const Worker& worker, const Json& event);
  void take_address(Worker& worker, const Json& event);
  void take_readiness(Worker& worker, bool is_done);
  void send_addresses_when_complete();
  void note_progress_made(Worker& worker);
  [[nodiscard]] int index_of(const Worker& worker) const;

  const Group group_;
  const EventHandler& on_event_;
  bool addresses_sent_ = false;
};

}  // namespace motley
