// A stream from a SendQueue to a MessageReader with its Mailbox, with arbitrary piece boundaries.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "comm/transport/message_stream.h"
#include "support/rank_group.h"

namespace motley {

using Bytes = std::vector<std::byte>;

inline Buffer message(std::size_t payload_bytes, std::uint8_t fill) {
  Buffer buffer(payload_bytes);
  buffer.set_payload_bytes(payload_bytes);
  std::ranges::fill(buffer.message(), std::byte{fill});
  return buffer;
}

inline Bytes stream_of(SendQueue& queue) {
  Bytes stream;
  for (auto pieces = queue.next(); !pieces[0].empty() || !pieces[1].empty();
       pieces = queue.next()) {
    for (const auto& piece : pieces) stream.insert(stream.end(), piece.begin(), piece.end());
    queue.taken(pieces[0].size() + pieces[1].size());
  }
  return stream;
}

class Receiver {
 public:
  explicit Receiver(std::uint64_t unexpected_bytes_max = 1 << 20)
      : mailbox_(Rank{0}, unexpected_bytes_max) {}

  Pending recv(Tag tag, std::size_t payload_bytes_max) {
    auto posted = mailbox_.recv(tag, Buffer(payload_bytes_max));
    woken_ = woken_ || posted.wakes_reader;
    return std::move(posted.pending);
  }

  // Feeds the stream in pieces of at most `step` bytes; returns the part that the reader did not
  // accept.
  Bytes feed(const Bytes& stream, std::size_t step = 1 << 20) {
    std::size_t at = 0;
    while (at < stream.size()) {
      const auto space = reader_.space();
      if (!space.ok()) {
        error_ = space.error().cause;
        break;
      }
      if (space->empty()) break;
      const std::size_t count = std::min({step, space->size(), stream.size() - at});
      std::memcpy(space->data(), stream.data() + at, count);
      reader_.fill(count);
      at += count;
    }
    return {stream.begin() + static_cast<std::ptrdiff_t>(at), stream.end()};
  }

  Mailbox& mailbox() { return mailbox_; }

  [[nodiscard]] bool woken() const { return woken_; }

  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  Mailbox mailbox_;
  MessageReader reader_{mailbox_};
  bool woken_ = false;
  std::string error_;
};

inline Bytes stream_with(Tag tag, std::size_t payload_bytes, std::uint8_t fill) {
  SendQueue queue(Rank{1});
  (void)queue.push(tag, message(payload_bytes, fill));
  return stream_of(queue);
}

inline Bytes stream_of_a_beat() {
  SendQueue queue(Rank{1});
  queue.push_heartbeat();
  return stream_of(queue);
}

inline void expect_message(Pending& pending, std::size_t payload_bytes, std::uint8_t fill) {
  ASSERT_TRUE(pending.done());
  auto outcome = pending.wait(soon(), "a message");
  ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_EQ(outcome->payload_bytes(), payload_bytes);
  EXPECT_TRUE(std::ranges::all_of(outcome->message(),
                                  [&](std::byte byte) { return byte == std::byte{fill}; }));
}

// Writes the result of one next().
inline Bytes stream_of_one(SendQueue& queue) {
  const auto pieces = queue.next();
  Bytes stream(pieces[0].begin(), pieces[0].end());
  stream.insert(stream.end(), pieces[1].begin(), pieces[1].end());
  queue.taken(stream.size());
  return stream;
}

}  // namespace motley
