// The limits on a server's connections. A connection is unauthenticated until it has shown the
// token. Authenticated connections have their own limit, which unauthenticated ones cannot exhaust.
// If there are too many unauthenticated connections, the oldest is closed, so a client with the
// token can always present it. One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

namespace motley {

class Guest {
 public:
  virtual ~Guest() = default;
  // Closes the connection in any state.
  virtual void leave() = 0;
};

class ConnectionPlaces {
 public:
  // REQUIRES: neither is 0.
  ConnectionPlaces(std::size_t known_max, std::size_t strangers_max)
      : known_max_(known_max), strangers_max_(strangers_max) {}

  void enter(const std::shared_ptr<Guest>& guest);

  // The guest has shown the token. False if the limit of authenticated connections is reached; it
  // then stays unauthenticated.
  [[nodiscard]] bool admit(const std::shared_ptr<Guest>& guest);

 private:
  const std::size_t known_max_;
  const std::size_t strangers_max_;
  std::deque<std::weak_ptr<Guest>> known_;
  std::deque<std::weak_ptr<Guest>> strangers_;  // oldest first
};

}  // namespace motley
