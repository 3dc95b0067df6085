// LateTransport: send() returns only after a pause, so the receiver may proceed before the sender
// does. Finds messages that announce a state before it holds.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "tests/support/forwarding_transport.h"

namespace motley {

class LateTransport final : public ForwardingTransport {
 public:
  // Pauses after every `every`-th message. `other` must outlive this object.
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
  std::atomic<int> sent_ = 0;  // any thread may send
};

}  // namespace motley
