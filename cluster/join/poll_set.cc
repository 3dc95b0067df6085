#include "cluster/join/poll_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley {

void PollSet::watch(int fd, short events, std::function<void()> ready) {
  fds_.push_back({.fd = fd, .events = events, .revents = 0});
  ready_.push_back(std::move(ready));
}

void PollSet::wait(double seconds) {
  const auto timeout_ms = static_cast<int>(std::ceil(std::clamp(seconds, 0.0, 1e6) * 1e3));
  const int count = ::poll(fds_.data(), fds_.size(), timeout_ms);
  for (std::size_t i = 0; count > 0 && i < fds_.size(); ++i) {
    if (fds_[i].revents != 0) ready_[i]();
  }
  fds_.clear();
  ready_.clear();
}

}  // namespace motley
