// GroupFailures: what went wrong in a group of workers, until it is clear what did so first, and
// the peers that they cannot connect to. One owner thread, that of the group.
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
  // `workers` are lent, and numbered as Failure numbers them.
  explicit GroupFailures(const std::vector<std::unique_ptr<Worker>>& workers) : workers_(workers) {}

  void add(Failure failure);

  [[nodiscard]] bool empty() const { return failures_.empty(); }

  // REQUIRES for all below: !empty().

  // Whether the cause is certain, or no more news of it can be expected.
  [[nodiscard]] bool are_settled() const;

  [[nodiscard]] const Deadline& settle_deadline() const { return settle_deadline_; }

  // What the person is told: with the names of machines instead of the workers' own numbers.
  [[nodiscard]] PeerFailure first() const;

  // What follows of all that workers have reported of peers that they cannot connect to, once the
  // others have had time to report the same. To be asked when one has.
  [[nodiscard]] std::optional<PeerFailure> dead_links();

  // Of links that came about, for people. REQUIRES: all have connected.
  [[nodiscard]] std::vector<std::string> one_way_links() const;

 private:
  // How long after the first failure others may still come that say more.
  [[nodiscard]] double settle_s(const Error& error) const;

  const std::vector<std::unique_ptr<Worker>>& workers_;
  std::vector<Failure> failures_;                    // in the order of their arrival
  Deadline settle_deadline_ = Deadline::after_s(0);  // meaningful once there is a failure
  std::optional<Deadline> links_deadline_;           // once a link is dead
};

}  // namespace motley
