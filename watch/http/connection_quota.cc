#include "watch/http/connection_quota.h"

namespace motley {
namespace {

void forget_closed(std::deque<std::weak_ptr<LimitedConnection>>& connections) {
  std::erase_if(connections, [](const auto& connection) { return connection.expired(); });
}

bool holds(const std::deque<std::weak_ptr<LimitedConnection>>& connections,
           const std::shared_ptr<LimitedConnection>& connection) {
  for (const auto& each : connections) {
    if (each.lock() == connection) return true;
  }
  return false;
}

}  // namespace

void ConnectionQuota::enter(const std::shared_ptr<LimitedConnection>& connection) {
  forget_closed(unauthenticated_);
  if (unauthenticated_.size() >= unauthenticated_max_) {
    if (const auto oldest = unauthenticated_.front().lock()) oldest->leave();
    unauthenticated_.pop_front();
  }
  unauthenticated_.push_back(connection);
}

bool ConnectionQuota::admit(const std::shared_ptr<LimitedConnection>& connection) {
  if (holds(authenticated_, connection)) return true;
  forget_closed(authenticated_);
  if (authenticated_.size() >= authenticated_max_) return false;
  std::erase_if(unauthenticated_,
                [&](const auto& stranger) { return stranger.lock() == connection; });
  authenticated_.push_back(connection);
  return true;
}

}  // namespace motley
