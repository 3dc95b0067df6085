// ForwardingTransport: forwards every call to another transport. Tests derive from it to change
// single functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "comm/transport/transport.h"

namespace motley {

class ForwardingTransport : public Transport {
 public:
  // `other` must outlive this object.
  explicit ForwardingTransport(Transport& other) : other_(other) {}

  [[nodiscard]] std::string address() const override { return other_.address(); }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    return other_.connect(addresses, deadline);
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    return other_.send(to, tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return other_.recv(from, tag, std::move(buffer));
  }

  [[nodiscard]] bool shares_memory(Rank peer) const override { return other_.shares_memory(peer); }

 private:
  Transport& other_;
};

}  // namespace motley
