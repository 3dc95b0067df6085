// The limits on a server's connections. A connection is unauthenticated until it has shown the
// token. Authenticated connections have their own limit, which unauthenticated ones cannot exhaust.
// If there are too many unauthenticated connections, the oldest is closed, so a client with the
// token can always present it. One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

namespace motley {

class LimitedConnection {
 public:
  virtual ~LimitedConnection() = default;
  // Closes the connection in any state.
  virtual void leave() = 0;
};

class ConnectionQuota {
 public:
  // REQUIRES: neither is 0.
  ConnectionQuota(std::size_t authenticated_max, std::size_t unauthenticated_max)
      : authenticated_max_(authenticated_max), unauthenticated_max_(unauthenticated_max) {}

  void enter(const std::shared_ptr<LimitedConnection>& connection);

  // The client has shown the token. False if the limit of authenticated connections is reached; it
  // then stays unauthenticated.
  [[nodiscard]] bool admit(const std::shared_ptr<LimitedConnection>& connection);

 private:
  const std::size_t authenticated_max_;
  const std::size_t unauthenticated_max_;
  std::deque<std::weak_ptr<LimitedConnection>> authenticated_;
  std::deque<std::weak_ptr<LimitedConnection>> unauthenticated_;  // oldest first
};

}  // namespace motley
