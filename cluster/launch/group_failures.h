// GroupFailures: collects the failures of a group of workers until the first cause is clear, and
// the peers that they cannot connect to; then the machines to blame. One owner thread, that of the
// group.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/launch/failure.h"
#include "cluster/launch/worker.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

class GroupFailures {
 public:
  // `workers` are borrowed; Failure::worker is the index into them.
  explicit GroupFailures(const std::vector<std::unique_ptr<Worker>>& workers) : workers_(workers) {}

  void add(Failure failure);

  // Ends the group: returns the failure's error, and retains its fault.
  [[nodiscard]] Error blame(PeerFailure failure);

  // Of the last blamed failure.
  [[nodiscard]] const PeerFault& fault() const { return fault_; }

  [[nodiscard]] bool empty() const { return failures_.empty(); }

  // REQUIRES for all below: !empty().

  // Whether the cause is certain, or no further reports are expected.
  [[nodiscard]] bool are_settled() const;

  [[nodiscard]] const Deadline& settle_deadline() const { return settle_deadline_; }

  // The failure for the user: with the names of workers instead of ranks.
  [[nodiscard]] PeerFailure first() const;

  // The failure, if any, of all reported unreachable peers, once the other ends have had time to
  // report them too. To be called after each such report.
  [[nodiscard]] std::optional<PeerFailure> dead_links();

  // Messages for the user about links that were connected late. REQUIRES: all have connected.
  [[nodiscard]] std::vector<std::string> one_way_links() const;

 private:
  // The time after the first failure in which further, more precise ones may arrive.
  [[nodiscard]] double settle_s(const Error& error) const;

  const std::vector<std::unique_ptr<Worker>>& workers_;
  std::vector<Failure> failures_;                    // in the order of arrival
  Deadline settle_deadline_ = Deadline::after_s(0);  // meaningful after the first failure
  std::optional<Deadline> links_deadline_;           // set while a link is dead
  PeerFault fault_;
};

}  // namespace motley
