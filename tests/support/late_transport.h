// LateTransport: whoever sends a message goes on later than whoever receives it. So what is told
// before it is done is told while it is not done.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "tests/support/forwarding_transport.h"

namespace motley {

class LateTransport final : public ForwardingTransport {
 public:
  // Late after each message whose number `every` divides. The other one must outlive it.
  explicit LateTransport(Transport& other,
                         std::chrono::microseconds pause = std::chrono::milliseconds(3),
                         int every = 1)
      : ForwardingTransport(other), pause_(pause), every_(every) {}

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    Pending sent = ForwardingTransport::send(to, tag, std::move(buffer));
    if (++sent_ % every_ == 0) std::this_thread::sleep_for(pause_);
    return sent;
  }

 private:
  const std::chrono::microseconds pause_;
  const int every_;
  std::atomic<int> sent_ = 0;  // any thread sends
};

}  // namespace motley
