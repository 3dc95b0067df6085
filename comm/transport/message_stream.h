// How messages follow each other in the byte stream to one peer: 16 bytes of header (tag, length
// and a check of both), then the message (docs/formats/tcp.md). Bulk comes in pieces with a header
// each, between which there is room for what is urgent. A header without a message is a beat: a
// sign of life. SendQueue gives the bytes to write, MessageReader takes those that came. Neither
// touches a socket.
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
#include "comm/transport/mailbox.h"
#include "comm/transport/pending.h"
#include "comm/transport/send_order.h"
#include "comm/transport/send_turns.h"
#include "comm/transport/transport.h"

namespace motley {

inline constexpr std::size_t kStreamHeaderBytes = 16;
inline constexpr Tag kBeatTag = kTagsEnd;   // beyond the callers' tags; all kTagBits set
inline constexpr Tag kPieceTag = kBeatTag;  // with bytes: of the message of bulk that has begun

// REQUIRES: tag <= kBeatTag.
void write_stream_header(Tag tag,
                         std::uint64_t message_bytes,
                         std::span<std::byte, kStreamHeaderBytes> bytes);

// Until it is known what a link takes: 5 ms of 100 Mbit/s.
inline constexpr std::size_t kFirstPieceBytes = std::size_t{64} << 10;

// SendQueue holds what is to be sent to one peer, in the order of send_order.h. Any thread may call
// push(); one thread at a time, the writer, calls the others.
class SendQueue {
 public:
  explicit SendQueue(Rank to) : to_(to) {}

  // From now on, the peer takes turns with others, and next() gives nothing while it waits for its
  // own. `turns` must outlive the queue.
  void take_turns(SendTurns& turns);

  struct Pushed {
    Pending pending;
    bool wakes_writer = false;  // next() was empty before
  };

  [[nodiscard]] Pushed push(Tag tag, Buffer buffer);

  // --- the writer's ---

  // The next bytes to write, as two spans because header and message lie apart; both empty when
  // there is nothing, or nothing whose turn it is. They stay where they are until taken() has
  // covered them.
  [[nodiscard]] std::array<std::span<const std::byte>, 2> next();
  // The first `count` bytes of next() have been written. Gives the buffer of a whole message back.
  void taken(std::size_t count);

  // Of the pieces of bulk that begin from now on. REQUIRES: bytes > 0.
  void set_piece_bytes(std::size_t bytes) { piece_bytes_max_ = bytes; }

  // The next bytes are a beat. REQUIRES: next() gave nothing.
  void push_beat();

  // Returns whether next() was empty when it was last called.
  [[nodiscard]] bool idle();

  // Ends every send, now and later, with kPeer and this cause. The first cause stays.
  void lose(const std::string& cause);

 private:
  struct Send {
    Tag tag = 0;
    Buffer buffer;
    std::shared_ptr<Completion> completion;  // null: a beat
    std::size_t sent = 0;                    // bytes of the message in pieces before
    bool has_place = false;                  // among turns_
  };

  [[nodiscard]] static std::size_t message_bytes(Send& send);
  [[nodiscard]] static bool is_bulk(const Send& send);
  // False: there is nothing to write.
  bool begin_next();
  // Of what would begin next. REQUIRES: mutex_ is held; something waits or is cut.
  [[nodiscard]] bool has_turn() const;

  const Rank to_;

  std::mutex mutex_;
  // Guarded by mutex_.
  SendTurns* turns_ = nullptr;  // null: the peer takes none
  SendOrder<Send> waiting_;
  bool idle_ = true;
  std::string lost_;  // why; empty while the peer is there

  // The writer's.
  std::optional<Send> current_;  // of which a message or a piece is being written
  std::optional<Send> cut_;      // bulk between two of its pieces
  std::size_t piece_bytes_max_ = kFirstPieceBytes;
  std::array<std::byte, 2 * kStreamHeaderBytes> headers_{};  // the message's, the piece's, or both
  std::size_t headers_bytes_ = 0;
  std::size_t piece_bytes_ = 0;  // behind the headers
  std::size_t written_ = 0;      // of headers and piece together
};

// Parses the stream of one peer into its mailbox. Used by one thread at a time.
class MessageReader {
 public:
  explicit MessageReader(Mailbox& mailbox) : mailbox_(mailbox) {}

  // Returns where the next bytes of the stream go. It is empty when there is no place for the
  // message that begins until another receive is posted. kCorrupt for a header that makes no sense:
  // the stream is over.
  [[nodiscard]] Result<std::span<std::byte>> room();
  // So many bytes have been put there.
  void fill(std::size_t count);

 private:
  // What the whole header begins. False: there is no place for it yet.
  [[nodiscard]] Result<bool> begin();

  Mailbox& mailbox_;
  std::array<std::byte, kStreamHeaderBytes> header_{};
  std::size_t header_filled_ = 0;
  std::uint64_t left_bytes_ = 0;  // of the message, or of the piece, that is being read
};

}  // namespace motley
