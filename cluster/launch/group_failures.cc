#include "cluster/launch/group_failures.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cluster/reach/link_diagnosis.h"

namespace motley {
namespace {

// Workers report unreachable peers once a second.
constexpr double kSettleLinks_s = 1.2;

// A worker's death and its peers' reports of it arrive within this time of each other.
constexpr double kSettle_s = 0.3;
// The longest delay, through ssh, between the last sign of life of a lost worker and the report of
// its end.
constexpr double kSettleLost_s = 1;
// How much later than its peers a stalled worker may report its own stall. Its timeout is as long
// as theirs, but it began to wait after its last message, and may check only periodically
// (training/device_watchdog.h).
constexpr double kSettleSilence_s = 3;

}  // namespace

void GroupFailures::add(Failure failure) {
  if (failures_.empty()) settle_deadline_ = Deadline::after_s(settle_s(failure.error));
  failures_.push_back(std::move(failure));
}

Error GroupFailures::blame(PeerFailure failure) {
  fault_ = std::move(failure.fault);
  return std::move(failure.error);
}

// A worker that has been silent for long is frozen or cut off: its end will not be reported.
double GroupFailures::settle_s(const Error& error) const {
  if (error.peer_state == PeerState::kSilent) return kSettleSilence_s;
  const std::optional<int> lost = error.peer;
  if (!lost || *lost >= static_cast<int>(workers_.size())) return kSettle_s;
  const double silent_s = now_s() - workers_[static_cast<std::size_t>(*lost)]->heard_at_s;
  return std::max(kSettle_s, kSettleLost_s - silent_s);
}

bool GroupFailures::are_settled() const {
  return failures_[first_cause(failures_)].kind == FailureKind::kCertain ||
         settle_deadline_.passed();
}

PeerFailure GroupFailures::first() const {
  const Failure& first = failures_[first_cause(failures_)];
  std::vector<WorkerIdentity> identities;
  std::vector<WorkerActivity> activities;
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
  PeerFault fault;
  if (first.kind != FailureKind::kPeerLost) {
    fault.machines = {identities[static_cast<std::size_t>(first.worker)].machine};
  }
  return {std::move(error), std::move(fault)};
}

std::optional<PeerFailure> GroupFailures::dead_links() {
  std::vector<LinkEnd> ends;
  for (const auto& worker : workers_) {
    ends.push_back({worker->spec().machine.name, now_s() - worker->heard_at_s < kLinkSilent_s,
                    worker->unreached});
  }
  auto found = diagnose_link(ends);
  if (!found) {
    links_deadline_.reset();
  } else if (!links_deadline_) {
    links_deadline_ = Deadline::after_s(kSettleLinks_s);
  } else if (links_deadline_->passed()) {
    return found;
  }
  return {};
}

std::vector<std::string> GroupFailures::one_way_links() const {
  std::vector<LinkEnd> ends;
  for (const auto& worker : workers_) {
    ends.push_back({worker->spec().machine.name, true, worker->was_unreached});
  }
  return one_way_lines(ends);
}

}  // namespace motley
