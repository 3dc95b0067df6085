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

// The header's layout in memory and on the wire.
struct Layout {
  std::uint64_t tag_and_check;  // the check in its high bits
  std::uint64_t message_bytes;
};

static_assert(sizeof(Layout) == kStreamHeaderBytes);

// Without the check, a flipped bit in a length would make the reader wait for bytes that never
// come, and one in a tag would deliver the message to no receive.
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

void SendQueue::use_scheduler(EgressScheduler& egress) {
  const std::lock_guard lock(mutex_);
  egress_ = &egress;
}

SendQueue::Pushed SendQueue::push(Tag tag, Buffer buffer) {
  Send send{tag, std::move(buffer), std::make_shared<Completion>()};
  Pushed pushed{Pending(send.completion)};
  const bool is_long = !is_bulk(send) && message_bytes(send) >= EgressScheduler::kMessageBytesMin;
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) {
    send.has_place = is_long && egress_ != nullptr;
    if (send.has_place) egress_->enqueue(to_);
    waiting_.push(tag, std::move(send));
    pushed.wakes_writer = std::exchange(idle_, false);
  } else {
    send.completion->finish(peer_lost(to_, lost_));
  }
  return pushed;
}

void SendQueue::push_heartbeat() {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) return;
  waiting_.push_front({kHeartbeatTag, Buffer(), nullptr});
  idle_ = false;
}

bool SendQueue::idle() {
  const std::lock_guard lock(mutex_);
  return idle_;
}

std::size_t SendQueue::message_bytes(Send& send) {
  return send.completion == nullptr ? 0 : send.buffer.message().size();
}

// A heartbeat has all bits of a tag set.
bool SendQueue::is_bulk(const Send& send) {
  return (send.tag & kBulkTag) != 0 && send.completion != nullptr;
}

bool SendQueue::may_send_next() const {
  if (egress_ == nullptr) return true;
  const bool goes_on = cut_ && !waiting_.has_urgent();
  const Send& next = goes_on ? *cut_ : waiting_.front();
  if (next.has_place) return egress_->may_begin(to_, EgressScheduler::Kind::kUrgent);
  return !is_bulk(next) || egress_->may_begin(to_, EgressScheduler::Kind::kBulk);
}

bool SendQueue::begin_next() {
  {
    const std::lock_guard lock(mutex_);
    idle_ = (waiting_.empty() && !cut_) || !may_send_next();
    if (idle_) return false;
    if (!cut_ || waiting_.has_urgent()) current_ = waiting_.pop();
  }
  const bool goes_on = !current_;
  if (goes_on) current_ = *std::exchange(cut_, std::nullopt);
  const bool in_pieces = is_bulk(*current_);
  const std::size_t left = message_bytes(*current_) - current_->sent;
  piece_bytes_ = in_pieces ? std::min(left, piece_bytes_max_) : left;
  headers_bytes_ = written_ = 0;
  const auto add_header = [&](Tag tag, std::uint64_t bytes) {
    write_stream_header(tag, bytes,
                        std::span(headers_).subspan(headers_bytes_).first<kStreamHeaderBytes>());
    headers_bytes_ += kStreamHeaderBytes;
  };
  if (!goes_on) add_header(current_->tag, left);
  if (in_pieces) add_header(kPieceTag, piece_bytes_);
  return true;
}

std::array<std::span<const std::byte>, 2> SendQueue::next() {
  if (!current_ && !begin_next()) return {};
  std::span<const std::byte> piece;
  if (piece_bytes_ > 0) piece = current_->buffer.message().subspan(current_->sent, piece_bytes_);
  const std::size_t of_headers = std::min(written_, headers_bytes_);
  return {std::span<const std::byte>(headers_).first(headers_bytes_).subspan(of_headers),
          piece.subspan(written_ - of_headers)};
}

void SendQueue::taken(std::size_t count) {
  if (!current_) return;
  written_ += count;
  MOTLEY_CHECK(written_ <= headers_bytes_ + piece_bytes_, "{} bytes", written_);
  if (written_ < headers_bytes_ + piece_bytes_) return;
  Send send = *std::exchange(current_, std::nullopt);
  send.sent += piece_bytes_;
  if (send.has_place) egress_->dequeue(to_);
  if (send.sent < message_bytes(send)) {
    cut_ = std::move(send);
  } else if (send.completion != nullptr) {
    send.completion->finish(std::move(send.buffer));
  }
}

void SendQueue::lose(const std::string& cause) {
  std::deque<Send> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return;
    lost_ = cause;
    dropped = waiting_.drain();
    if (egress_ != nullptr) egress_->forget_peer(to_);
  }
  for (auto* begun : {&cut_, &current_}) {
    if (*begun) dropped.push_front(*std::exchange(*begun, std::nullopt));
  }
  for (Send& send : dropped) {
    if (send.completion != nullptr) send.completion->finish(peer_lost(to_, cause));
  }
}

Result<bool> MessageReader::begin() {
  Layout layout{};
  std::memcpy(&layout, header_.data(), kStreamHeaderBytes);
  const Tag tag = layout.tag_and_check & kHeartbeatTag;
  const std::uint64_t bytes = layout.message_bytes;
  if (layout.tag_and_check != (tag | check_of(tag, bytes))) {
    return broken_stream("its data was damaged in transit");
  }
  const bool is_bulk = tag != kPieceTag && (tag & kBulkTag) != 0;
  const auto expected = [&] {
    if (tag == kPieceTag) return bytes <= mailbox_.cut_bytes();  // none cut: a heartbeat
    return bytes >= kFrameHeaderBytes && bytes <= kMessageBytesMax &&
           !(is_bulk && mailbox_.cut_bytes() > 0);
  };
  if (!expected()) return broken_stream("it sent a malformed message");
  left_bytes_ = is_bulk ? 0 : bytes;
  if (tag == kPieceTag) {
    if (bytes > 0) mailbox_.proceed();
    return true;
  }
  if (!mailbox_.begin(tag, bytes)) return false;
  if (is_bulk) mailbox_.cut();
  return true;
}

Result<std::span<std::byte>> MessageReader::space() {
  if (header_filled_ == kStreamHeaderBytes) {
    MOTLEY_ASSIGN(const bool has_place, begin());
    if (!has_place) return std::span<std::byte>();
    header_filled_ = 0;
  }
  const auto space = mailbox_.space();
  if (space.empty()) return std::span(header_).subspan(header_filled_);
  return space.first(std::min<std::uint64_t>(space.size(), left_bytes_));
}

void MessageReader::fill(std::size_t count) {
  if (mailbox_.space().empty()) {
    header_filled_ += count;
    return;
  }
  mailbox_.fill(count);
  left_bytes_ -= count;
  if (left_bytes_ == 0 && !mailbox_.space().empty()) mailbox_.cut();
}

}  // namespace motley
