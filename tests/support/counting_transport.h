// CountingTransport: counts what a rank gives another transport to send, on any of its threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/transport.h"

namespace motley {

class CountingTransport final : public Transport {
 public:
  // The other one must outlive it. shares_memory: as the other one does; else everything is sent.
  CountingTransport(Transport& other, int rank_count, bool shares_memory = false)
      : other_(other),
        shares_memory_(shares_memory),
        payload_bytes_(static_cast<std::size_t>(rank_count), 0),
        message_bytes_(static_cast<std::size_t>(rank_count), 0) {}

  // Without headers. [Rank] that it went to. Asked once all is sent.
  [[nodiscard]] const std::vector<std::uint64_t>& payload_bytes() const { return payload_bytes_; }

  // With them. [Rank]
  [[nodiscard]] const std::vector<std::uint64_t>& message_bytes() const { return message_bytes_; }

  [[nodiscard]] std::string address() const override { return other_.address(); }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    return other_.connect(addresses, deadline);
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    {
      const std::lock_guard lock(mutex_);
      payload_bytes_[to.index()] += buffer.payload_bytes();
      message_bytes_[to.index()] += buffer.message().size();
    }
    return other_.send(to, tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return other_.recv(from, tag, std::move(buffer));
  }

  [[nodiscard]] bool shares_memory(Rank peer) const override {
    return shares_memory_ && other_.shares_memory(peer);
  }

 private:
  Transport& other_;
  const bool shares_memory_;
  std::mutex mutex_;
  std::vector<std::uint64_t> payload_bytes_;
  std::vector<std::uint64_t> message_bytes_;
};

}  // namespace motley
