// PollSet: the descriptors of one round of a poll loop, each with the function to call once it is
// ready. One owner thread.
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

namespace motley {

class PollSet {
 public:
  // REQUIRES: what `ready` refers to lives until the end of the round; functions of other
  // descriptors do not end it.
  void watch(int fd, short events, std::function<void()> ready);

  // Waits for at most `seconds`, calls the functions of the descriptors that are ready, and forgets
  // all descriptors.
  void wait(double seconds);

 private:
  std::vector<pollfd> fds_;
  std::vector<std::function<void()>> ready_;  // [index in fds_]
};

}  // namespace motley
