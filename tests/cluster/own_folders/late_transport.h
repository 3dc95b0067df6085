// LateTransport: whoever sends a message goes on later than whoever receives it. So what is told
// before it is done is told while it is not done.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/transport/transport.h"

namespace motley::testing {

class LateTransport final : public Transport {
 public:
  // The other one must outlive it.
  explicit LateTransport(Transport& other) : other_(other) {}

  [[nodiscard]] std::string address() const override { return other_.address(); }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    return other_.connect(addresses, deadline);
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    Pending sent = other_.send(to, tag, std::move(buffer));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return sent;
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return other_.recv(from, tag, std::move(buffer));
  }

 private:
  Transport& other_;
};

}  // namespace motley::testing
