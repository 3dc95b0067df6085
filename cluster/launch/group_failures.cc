#include "cluster/launch/group_failures.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace motley {
namespace {

// News of one worker's death and its peers' complaints arrive within this time of each other.
constexpr double kSettle_s = 0.3;
// How long news of the end of a worker that others have lost may be on its way through ssh, after
// its last sign of life.
constexpr double kSettleLost_s = 1;
// How much later than those who wait for it a worker may find that it stands still, whose deadline
// is as long as theirs: it began to wait after its last message, and may look only now and then
// (training/device_watch.h).
constexpr double kSettleSilence_s = 2;

}  // namespace

void GroupFailures::add(Failure failure) {
  if (failures_.empty()) settle_deadline_ = Deadline::after_s(settle_s(failure.error));
  failures_.push_back(std::move(failure));
}

// One that has been silent for long is frozen or cut off: it did not end, so there is no such news.
double GroupFailures::settle_s(const Error& error) const {
  if (says_silence(error)) return kSettleSilence_s;
  const std::optional<int> lost = lost_worker(error);
  if (!lost || *lost >= static_cast<int>(workers_.size())) return kSettle_s;
  const double silent_s = now_s() - workers_[static_cast<std::size_t>(*lost)]->heard_at_s;
  return std::max(kSettle_s, kSettleLost_s - silent_s);
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
