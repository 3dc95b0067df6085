// EndRequest: SIGTERM as a request to leave. A batch system, a shutdown or an owner sends it some
// time before it kills.
#pragma once

#include <functional>
#include <thread>

#include "base/system/owned_fd.h"

namespace motley {

class EndRequest {
 public:
  // While it exists, the first SIGTERM of this process calls `on_request` on another thread; the
  // process ends with status 143 by a second one, or if the object still exists `grace_s` after the
  // first. Within `once_s` it is the same request: a batch system signals all processes of a
  // machine, and the one that started this one passes the signal on. REQUIRES: the only one at a
  // time.
  explicit EndRequest(std::function<void()> on_request, double grace_s = 60, double once_s = 1);
  // SIGTERM has its earlier effect again.
  ~EndRequest();
  EndRequest(const EndRequest&) = delete;
  EndRequest& operator=(const EndRequest&) = delete;

 private:
  void wait(double grace_s, double once_s);

  std::function<void()> on_request_;
  OwnedFd requests_;  // the handler writes a byte for each signal into the other end
  std::jthread waiter_;
};

}  // namespace motley
