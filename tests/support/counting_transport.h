// CountingTransport: forwards to another transport and counts the bytes sent by this rank, on any
// thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/forwarding_transport.h"

namespace motley {

class CountingTransport final : public ForwardingTransport {
 public:
  // `other` must outlive this object.
  CountingTransport(Transport& other, int rank_count)
      : ForwardingTransport(other),
        payload_bytes_(static_cast<std::size_t>(rank_count), 0),
        message_bytes_(static_cast<std::size_t>(rank_count), 0) {}

  // Payload bytes without headers, [destination Rank]. Read only after all sends.
  [[nodiscard]] const std::vector<std::uint64_t>& payload_bytes() const { return payload_bytes_; }

  // Payload and header bytes, [destination Rank].
  [[nodiscard]] const std::vector<std::uint64_t>& message_bytes() const { return message_bytes_; }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    {
      const std::lock_guard lock(mutex_);
      payload_bytes_[to.index()] += buffer.payload_bytes();
      message_bytes_[to.index()] += buffer.message().size();
    }
    return ForwardingTransport::send(to, tag, std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> payload_bytes_;
  std::vector<std::uint64_t> message_bytes_;
};

}  // namespace motley
