// BufferPool: reuses buffers, so that a loop of messages allocates nothing after its first
// iteration. Retains all returned buffers; grows to the maximum in use at once. One owner thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "comm/transport/buffer.h"

namespace motley {

class BufferPool {
 public:
  // A buffer with exactly this payload capacity; its payload bytes are unspecified.
  [[nodiscard]] Buffer take(std::size_t payload_bytes_max) {
    const auto it = free_.find(payload_bytes_max);
    if (it == free_.end()) return Buffer(payload_bytes_max);
    Buffer buffer = std::move(it->second);
    free_.erase(it);
    return buffer;
  }

  // A buffer of the pool with the same capacity and payload.
  [[nodiscard]] Buffer copy_of(const Buffer& buffer) {
    Buffer copy = take(buffer.payload_bytes_max());
    copy.set_payload_bytes(buffer.payload_bytes());
    std::ranges::copy(buffer.payload(), copy.payload().begin());
    return copy;
  }

  void give(Buffer buffer) { free_.emplace(buffer.payload_bytes_max(), std::move(buffer)); }

 private:
  std::multimap<std::size_t, Buffer> free_;  // by capacity
};

}  // namespace motley
