// ByteQueue: a bounded FIFO of bytes between a socket and its reader or writer. Its memory is
// allocated on first use. One owner thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace motley {

class ByteQueue {
 public:
  explicit ByteQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // REQUIRES: bytes_max is not less than before.
  void grow(std::size_t bytes_max) { bytes_max_ = bytes_max; }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::span(memory_).subspan(begin_, end_ - begin_);
  }

  // REQUIRES: count <= bytes().size().
  void drop(std::size_t count) {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  // Returns the free space for more bytes, which add() then counts; empty if the queue is full.
  [[nodiscard]] std::span<std::byte> space() {
    if (memory_.size() < bytes_max_) memory_.resize(bytes_max_);
    if (end_ == memory_.size() && begin_ > 0) {
      std::memmove(memory_.data(), memory_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    return std::span(memory_).subspan(end_);
  }

  // REQUIRES: count <= space().size().
  void add(std::size_t count) { end_ += count; }

 private:
  std::size_t bytes_max_;
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;  // the bytes are [begin_, end_) of memory_
  std::size_t end_ = 0;
};

}  // namespace motley
