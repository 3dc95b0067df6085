#include "watch/http/connection_places.h"

namespace motley {
namespace {

void forget_who_left(std::deque<std::weak_ptr<Guest>>& guests) {
  std::erase_if(guests, [](const auto& guest) { return guest.expired(); });
}

bool holds(const std::deque<std::weak_ptr<Guest>>& guests, const std::shared_ptr<Guest>& guest) {
  for (const auto& each : guests) {
    if (each.lock() == guest) return true;
  }
  return false;
}

}  // namespace

void ConnectionPlaces::enter(const std::shared_ptr<Guest>& guest) {
  forget_who_left(strangers_);
  if (strangers_.size() >= strangers_max_) {
    if (const auto oldest = strangers_.front().lock()) oldest->leave();
    strangers_.pop_front();
  }
  strangers_.push_back(guest);
}

bool ConnectionPlaces::admit(const std::shared_ptr<Guest>& guest) {
  if (holds(known_, guest)) return true;
  forget_who_left(known_);
  if (known_.size() >= known_max_) return false;
  std::erase_if(strangers_, [&](const auto& stranger) { return stranger.lock() == guest; });
  known_.push_back(guest);
  return true;
}

}  // namespace motley
