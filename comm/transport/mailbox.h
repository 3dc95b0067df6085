// Mailbox: matches what one peer sends with the receives that are posted for it, by tag, each in
// its order. A message whose receive is there goes straight into its buffer. One that comes early
// is kept, as long as all early ones fit their share of memory; then the reader has to wait. One
// that is longer than the room posted for it is an error of that receive, and its bytes are
// dropped.
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
#include "comm/transport/early_share.h"
#include "comm/transport/pending.h"
#include "comm/transport/transport.h"

namespace motley {

class Mailbox {
 public:
  explicit Mailbox(Rank from, std::uint64_t early_bytes_max = kEarlyBytesMax)
      : from_(from), early_share_(early_bytes_max) {}

  struct Posted {
    Pending pending;
    bool wakes_reader = false;  // begin() gave false before; it may succeed now
  };

  // After lose() only early messages can still be had; everything else is kPeer.
  [[nodiscard]] Posted recv(Tag tag, Buffer buffer);

  // --- the reader's ---

  // Makes the place of a message whose header has come. False: there is none before another recv().
  // REQUIRES: the one before is complete, or was cut; message_bytes >= kFrameHeaderBytes.
  [[nodiscard]] bool begin(Tag tag, std::uint64_t message_bytes);
  // Returns where its next bytes go: nowhere once it is complete, and when none has begun.
  [[nodiscard]] std::span<std::byte> room();
  // So many bytes have been put there. The last ones deliver the message.
  void fill(std::size_t count);
  // Others may come before the rest of the message that has begun. REQUIRES: room() is not empty,
  // and no other message is cut.
  void cut();
  // How many bytes of a message that was cut are still to come; 0: none was.
  [[nodiscard]] std::uint64_t cut_bytes() const;
  // It goes on. REQUIRES: cut_bytes() > 0, and the message before is complete.
  void go_on();
  // Ends every receive, now and later, with kPeer and this cause. The first cause stays.
  void lose(const std::string& cause);

 private:
  struct Receive {
    Buffer buffer;
    std::shared_ptr<Completion> completion;
  };

  // The message that is being read.
  struct Arrival {
    Tag tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t filled = 0;
    Buffer buffer;                           // without memory: the bytes are dropped
    std::shared_ptr<Completion> completion;  // null: nobody has asked for it yet
    bool is_kept = true;                     // false: dropped
  };

  void deliver(Arrival arrival);
  void deliver_early(Receive receive, Buffer message) const;

  const Rank from_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<Tag, std::deque<Receive>> receives_;
  std::map<Tag, std::deque<Buffer>> early_;  // complete
  EarlyShare early_share_;                   // of early messages, the one being read included
  bool reader_waits_ = false;
  std::string lost_;  // why; empty while the peer is there

  // The reader's.
  std::optional<Arrival> arrival_;
  std::optional<Arrival> cut_;
  std::vector<std::byte> dropped_;
};

}  // namespace motley
