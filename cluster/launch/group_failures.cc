#include "cluster/launch/group_failures.h"

#include <utility>

namespace motley {
namespace {

// News of one worker's death and its peers' complaints arrive within this time of each other.
constexpr double kSettle_s = 0.3;
// How long news of the end of a worker that others have lost may be on its way through ssh.
constexpr double kSettleLost_s = 1;

}  // namespace

void GroupFailures::add(Failure failure) {
  if (failures_.empty()) {
    settle_deadline_ = Deadline::after_s(lost_worker(failure.error) ? kSettleLost_s : kSettle_s);
  }
  failures_.push_back(std::move(failure));
}

bool GroupFailures::are_settled() const {
  return failures_[first_cause(failures_)].kind == FailureKind::kCertain ||
         settle_deadline_.passed();
}

Error GroupFailures::first_error() const {
  const Failure& first = failures_[first_cause(failures_)];
  std::vector<Identity> identities;
  std::vector<Activity> activities;
  for (const auto& worker : workers_) {
    identities.push_back(worker->identity());
    activities.push_back(worker->activity);
  }
  if (first.kind == FailureKind::kPeerLost) {
    if (auto loss = describe_loss(failures_, identities, activities)) return *std::move(loss);
  }
  Error error = first.error;
  error.what = with_names(std::move(error.what), identities);
  error.cause = with_names(std::move(error.cause), identities);
  return error;
}

}  // namespace motley
