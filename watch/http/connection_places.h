// The places of a server's connections. Those that have shown the token have places of their own,
// which no stranger can take: whoever connects is a stranger until then, and where strangers are
// too many the oldest of them gives way, so that somebody who has the token always gets to show it.
// One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

namespace motley {

class Guest {
 public:
  virtual ~Guest() = default;
  // Ends it, whatever it is about.
  virtual void leave() = 0;
};

class ConnectionPlaces {
 public:
  // REQUIRES: neither is 0.
  ConnectionPlaces(std::size_t known_max, std::size_t strangers_max)
      : known_max_(known_max), strangers_max_(strangers_max) {}

  void enter(const std::shared_ptr<Guest>& guest);

  // The guest has shown the token. False where all places of those are taken; it stays a stranger.
  [[nodiscard]] bool admit(const std::shared_ptr<Guest>& guest);

 private:
  const std::size_t known_max_;
  const std::size_t strangers_max_;
  std::deque<std::weak_ptr<Guest>> known_;
  std::deque<std::weak_ptr<Guest>> strangers_;  // the oldest first
};

}  // namespace motley
