// The byte stream of messages to one peer: 16 bytes of header (tag, length and a check of both),
// then the message (docs/formats/tcp.md). Bulk is sent in pieces with a header each, between which
// urgent messages can be sent. A header without a message is a heartbeat. SendQueue provides the
// bytes to write, MessageReader parses received bytes. Neither touches a socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/buffer.h"
#include "comm/transport/egress_scheduler.h"
#include "comm/transport/mailbox.h"
#include "comm/transport/pending.h"
#include "comm/transport/send_order.h"
#include "comm/transport/transport.h"

namespace motley {

inline constexpr std::size_t kStreamHeaderBytes = 16;
inline constexpr Tag kHeartbeatTag = kTagsEnd;   // beyond the callers' tags; all kTagBits set
inline constexpr Tag kPieceTag = kHeartbeatTag;  // with bytes: a piece of a bulk message

// REQUIRES: tag <= kHeartbeatTag.
void write_stream_header(Tag tag,
                         std::uint64_t message_bytes,
                         std::span<std::byte, kStreamHeaderBytes> bytes);

// Used until the link's bandwidth is known: 5 ms of 100 Mbit/s.
inline constexpr std::size_t kFirstPieceBytes = std::size_t{64} << 10;

// SendQueue: the messages to be sent to one peer, in the order of send_order.h. Any thread may call
// push(); one thread at a time, the writer, calls the other functions.
class SendQueue {
 public:
  explicit SendQueue(Rank to) : to_(to) {}

  // From now on the peer takes turns with others, and next() returns nothing while it waits for its
  // turn. `egress` must outlive the queue.
  void use_scheduler(EgressScheduler& egress);

  struct Pushed {
    Pending pending;
    bool wakes_writer = false;  // next() was empty before
  };

  [[nodiscard]] Pushed push(Tag tag, Buffer buffer);

  // --- the writer's functions ---

  // The next bytes to write, as two spans because header and message are separate; both empty if
  // there is nothing to send or the peer waits for its turn. They stay valid until taken() has
  // covered them.
  [[nodiscard]] std::array<std::span<const std::byte>, 2> next();
  // The first `count` bytes of next() are written. Returns the buffer of a complete message to its
  // owner.
  void taken(std::size_t count);

  // The size of pieces of bulk that begin from now on. REQUIRES: bytes > 0.
  void set_piece_bytes(std::size_t bytes) { piece_bytes_max_ = bytes; }

  // Makes a heartbeat the next bytes. REQUIRES: next() returned nothing.
  void push_heartbeat();

  // Returns whether the last call of next() returned nothing.
  [[nodiscard]] bool idle();

  // Ends every current and future send with kPeer and this cause. The first cause is retained.
  void lose(const std::string& cause);

 private:
  struct Send {
    Tag tag = 0;
    Buffer buffer;
    std::shared_ptr<Completion> completion;  // null: a heartbeat
    std::size_t sent = 0;                    // bytes of the message in earlier pieces
    bool has_place = false;                  // queued in egress_
  };

  [[nodiscard]] static std::size_t message_bytes(Send& send);
  [[nodiscard]] static bool is_bulk(const Send& send);
  // Returns false if there is nothing to write.
  bool begin_next();
  // Whether the next message or piece may begin. REQUIRES: mutex_ is held; a message waits or is
  // cut.
  [[nodiscard]] bool may_send_next() const;

  const Rank to_;

  std::mutex mutex_;
  // Guarded by mutex_.
  EgressScheduler* egress_ = nullptr;  // null: the peer does not take turns
  SendOrder<Send> waiting_;
  bool idle_ = true;
  std::string lost_;  // the reason; empty while connected

  // Used by the writer only.
  std::optional<Send> current_;  // the message or piece being written
  std::optional<Send> cut_;      // bulk between two of its pieces
  std::size_t piece_bytes_max_ = kFirstPieceBytes;
  std::array<std::byte, 2 * kStreamHeaderBytes> headers_{};  // the message's, the piece's, or both
  std::size_t headers_bytes_ = 0;
  std::size_t piece_bytes_ = 0;  // after the headers
  std::size_t written_ = 0;      // of headers and piece together
};

// Parses one peer's stream into its mailbox. Used by one thread at a time.
class MessageReader {
 public:
  explicit MessageReader(Mailbox& mailbox) : mailbox_(mailbox) {}

  // Returns the destination of the stream's next bytes. Empty if the next message has no buffer
  // until another receive is posted. kCorrupt for an invalid header: the stream is then unusable.
  [[nodiscard]] Result<std::span<std::byte>> space();
  // `count` bytes are in place.
  void fill(std::size_t count);

 private:
  // Interprets a complete header. False: the message has no buffer yet.
  [[nodiscard]] Result<bool> begin();

  Mailbox& mailbox_;
  std::array<std::byte, kStreamHeaderBytes> header_{};
  std::size_t header_filled_ = 0;
  std::uint64_t left_bytes_ = 0;  // remaining bytes of the message or piece being read
};

}  // namespace motley
