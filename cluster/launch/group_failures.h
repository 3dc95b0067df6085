// GroupFailures: what went wrong in a group of workers, until it is clear what did so first. One
// owner thread, that of the group.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/launch/failure.h"
#include "cluster/launch/worker.h"

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
  [[nodiscard]] Error first_error() const;

 private:
  // How long after the first failure others may still come that say more.
  [[nodiscard]] double settle_s(const Error& error) const;

  const std::vector<std::unique_ptr<Worker>>& workers_;
  std::vector<Failure> failures_;                    // in the order of their arrival
  Deadline settle_deadline_ = Deadline::after_s(0);  // meaningful once there is a failure
};

}  // namespace motley
