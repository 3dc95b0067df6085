// Mailbox: matches one peer's messages with the receives posted for them, by tag, each tag in FIFO
// order. A message with a posted receive goes directly into its buffer. An early one is stored as
// long as all early ones fit their memory budget; otherwise the reader has to wait. A message
// longer than its receive is an error of that receive, and its bytes are discarded.
//
// recv() may be called from any thread, the reader's functions by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "comm/transport/buffer.h"
#include "comm/transport/pending.h"
#include "comm/transport/transport.h"
#include "comm/transport/unexpected_message_quota.h"

namespace motley {

class Mailbox {
 public:
  explicit Mailbox(Rank from, std::uint64_t unexpected_bytes_max = kUnexpectedBytesMax)
      : from_(from), unexpected_quota_(unexpected_bytes_max) {}

  struct Posted {
    Pending pending;
    bool wakes_reader = false;  // begin() returned false before; it may succeed now
  };

  // After lose() only stored early messages can be received; everything else is kPeer.
  [[nodiscard]] Posted recv(Tag tag, Buffer buffer);

  // --- the reader's functions ---

  // Prepares the buffer of a message whose header has arrived. False: there is none before another
  // recv(). REQUIRES: the previous message is complete or was cut; message_bytes >=
  // kFrameHeaderBytes.
  [[nodiscard]] bool begin(Tag tag, std::uint64_t message_bytes);
  // Returns the destination of its next bytes: empty once it is complete, or if none has begun.
  [[nodiscard]] std::span<std::byte> space();
  // `count` more bytes are in place. The last ones deliver the message.
  void fill(std::size_t count);
  // Suspends the message that has begun, so that others may arrive before its rest. REQUIRES:
  // space() is not empty, and no other message is cut.
  void cut();
  // The bytes still missing of a message that was cut; 0: none was.
  [[nodiscard]] std::uint64_t cut_bytes() const;
  // Resumes it. REQUIRES: cut_bytes() > 0, and the previous message is complete.
  void proceed();
  // Ends every current and future receive with kPeer and this cause. The first cause is retained.
  void lose(const std::string& cause);

 private:
  struct Receive {
    Buffer buffer;
    std::shared_ptr<Completion> completion;
  };

  // The message being read.
  struct Arrival {
    Tag tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t filled = 0;
    Buffer buffer;                           // without memory: the bytes are discarded
    std::shared_ptr<Completion> completion;  // null: no receive is posted yet
    bool is_kept = true;                     // false: discarded
  };

  void deliver(Arrival arrival);
  void deliver_unexpected(Receive receive, Buffer message) const;

  const Rank from_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<Tag, std::deque<Receive>> receives_;
  std::map<Tag, std::deque<Buffer>> early_;  // complete
  UnexpectedMessageQuota unexpected_quota_;  // early messages, including the one being read
  bool reader_waits_ = false;
  std::string lost_;  // the reason; empty while connected

  // Used by the reader only.
  std::optional<Arrival> arrival_;
  std::optional<Arrival> cut_;
  std::vector<std::byte> dropped_;
};

}  // namespace motley
