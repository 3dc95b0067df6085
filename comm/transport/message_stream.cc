#include "comm/transport/message_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "comm/transport/comm_errors.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "the stream is little-endian");

constexpr std::uint64_t kMessageBytesMax = 1ULL << 40;

// The header as it lies in memory and on the wire.
struct Layout {
  std::uint64_t tag_and_check;  // the check in its high bits
  std::uint64_t message_bytes;
};

static_assert(sizeof(Layout) == kStreamHeaderBytes);

// Without it, a flipped bit in a length would let the reader wait for bytes that never come, and
// one in a tag would bring the message to nobody.
std::uint64_t check_of(Tag tag, std::uint64_t message_bytes) {
  const Layout unchecked{tag, message_bytes};
  return hash64(std::as_bytes(std::span(&unchecked, 1))) << kTagBits;
}

Error broken_stream(const std::string& cause) {
  return {ErrorCode::kCorrupt, "a broken stream", cause, ""};
}

}  // namespace

void write_stream_header(Tag tag,
                         std::uint64_t message_bytes,
                         std::span<std::byte, kStreamHeaderBytes> bytes) {
  const Layout layout{tag | check_of(tag, message_bytes), message_bytes};
  std::memcpy(bytes.data(), &layout, kStreamHeaderBytes);
}

SendQueue::Pushed SendQueue::push(Tag tag, Buffer buffer) {
  Send send{tag, std::move(buffer), std::make_shared<Completion>()};
  Pushed pushed{Pending(send.completion)};
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) {
    waiting_.push(tag, std::move(send));
    pushed.wakes_writer = std::exchange(idle_, false);
  } else {
    send.completion->finish(peer_lost(to_, lost_));
  }
  return pushed;
}

void SendQueue::push_beat() {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) return;
  waiting_.push_front({kBeatTag, Buffer(), nullptr});
  idle_ = false;
}

bool SendQueue::idle() {
  const std::lock_guard lock(mutex_);
  return idle_;
}

std::array<std::span<const std::byte>, 2> SendQueue::pieces() {
  if (!has_current_) {
    const std::lock_guard lock(mutex_);
    idle_ = waiting_.empty();
    if (idle_) return {};
    current_ = waiting_.pop();
    has_current_ = true;
    written_ = 0;
    const bool is_beat = current_.completion == nullptr;
    write_stream_header(current_.tag, is_beat ? 0 : current_.buffer.message().size(), header_);
  }
  std::span<const std::byte> message;
  if (current_.completion != nullptr) message = current_.buffer.message();
  const std::size_t of_header = std::min(written_, kStreamHeaderBytes);
  return {std::span<const std::byte>(header_).subspan(of_header),
          message.subspan(written_ - of_header)};
}

void SendQueue::taken(std::size_t count) {
  if (!has_current_) return;
  written_ += count;
  const std::size_t message_bytes =
      current_.completion == nullptr ? 0 : current_.buffer.message().size();
  MOTLEY_CHECK(written_ <= kStreamHeaderBytes + message_bytes, "{} bytes", written_);
  if (written_ < kStreamHeaderBytes + message_bytes) return;
  has_current_ = false;
  if (current_.completion != nullptr) {
    std::exchange(current_.completion, nullptr)->finish(std::move(current_.buffer));
  }
}

void SendQueue::lose(const std::string& cause) {
  std::deque<Send> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return;
    lost_ = cause;
    dropped = waiting_.drain();
  }
  if (std::exchange(has_current_, false)) dropped.push_front(std::move(current_));
  for (Send& send : dropped) {
    if (send.completion != nullptr) send.completion->finish(peer_lost(to_, cause));
  }
}

Result<std::span<std::byte>> MessageReader::room() {
  if (const auto room = mailbox_.room(); !room.empty()) return room;
  if (header_filled_ == kStreamHeaderBytes) {
    Layout layout{};
    std::memcpy(&layout, header_.data(), kStreamHeaderBytes);
    const Tag tag = layout.tag_and_check & kBeatTag;
    if (layout.tag_and_check != (tag | check_of(tag, layout.message_bytes))) {
      return broken_stream("what it sent was damaged on the way");
    }
    const bool is_beat = tag == kBeatTag && layout.message_bytes == 0;
    if (!is_beat) {
      if (tag >= kTagsEnd || layout.message_bytes < kFrameHeaderBytes ||
          layout.message_bytes > kMessageBytesMax) {
        return broken_stream("it sent a message that makes no sense");
      }
      if (!mailbox_.begin(tag, layout.message_bytes)) return std::span<std::byte>();
    }
    header_filled_ = 0;
    if (!is_beat) return mailbox_.room();
  }
  return std::span(header_).subspan(header_filled_);
}

void MessageReader::fill(std::size_t count) {
  if (mailbox_.room().empty()) {
    header_filled_ += count;
  } else {
    mailbox_.fill(count);
  }
}

}  // namespace motley
