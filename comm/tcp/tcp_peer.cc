// TCP_USER_TIMEOUT would detect a cut too, but it also ends a connection whose receiver has rightly
// closed its window for that long because too many early messages are pending.
#include "comm/tcp/tcp_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/asio/post.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

constexpr std::chrono::seconds kBetweenHeartbeats{1};
// The least number of attempts of the system to resend during an interruption as long as the
// patience. The pauses between them are the delay with which its end is noticed.
constexpr double kResendsWithinPatience = 8;
constexpr int kTurnsMax = 32;  // loop iterations for one peer before the others are served
// The most that a sending thread writes itself: encrypting it takes less time than waking the I/O
// thread.
constexpr std::size_t kDirectBytesMax = std::size_t{16} << 10;
// The transmission time of one piece of bulk. Shorter ones would pass no sooner than the system's
// packets.
constexpr std::chrono::milliseconds kPieceTime{4};
constexpr std::size_t kPieceBytesMin = std::size_t{8} << 10;
constexpr std::size_t kPieceBytesMax = std::size_t{1} << 20;
// The transmission time of the data that the system may hold unsent: enough to keep the link busy
// until this thread runs again.
constexpr std::chrono::milliseconds kUnsentTime{4};
constexpr std::size_t kUnsentMin = std::size_t{16} << 10;

}  // namespace

TcpPeer::TcpPeer(asio::io_context& io,
                 Rank rank,
                 EgressScheduler& egress,
                 const TransportOptions& options)
    : io_(io),
      stall_timeout_(options.stall_timeout),
      patience_s_(options.patience_s),
      mailbox_(rank, options.unexpected_bytes_max),
      queue_(rank),
      egress_(egress),
      reader_(mailbox_) {}

Pending TcpPeer::send(Tag tag, Buffer buffer) {
  const bool is_small = kStreamHeaderBytes + buffer.message().size() <= kDirectBytesMax;
  auto pushed = queue_.push(tag, std::move(buffer));
  if (!pushed.wakes_writer) return std::move(pushed.pending);
  std::unique_lock lock(mutex_, std::defer_lock);
  if (is_small && lock.try_lock()) {
    write_up_to(kDirectBytesMax);
  } else {
    write_later();
  }
  return std::move(pushed.pending);
}

Pending TcpPeer::recv(Tag tag, Buffer buffer) {
  auto posted = mailbox_.recv(tag, std::move(buffer));
  if (posted.wakes_reader) read_later();
  return std::move(posted.pending);
}

void TcpPeer::join(TcpStream stream) {
  const std::lock_guard lock(mutex_);
  stream_.emplace(std::move(stream));
  stream_->grow();
  stream_->resend_within(patience_s_ / kResendsWithinPatience);
  // Without acknowledged byte counts, a slow peer's turn would delay the other peers.
  const bool is_measured = !stream_->is_local() && TcpStream::reports_acknowledged();
  if (is_measured) queue_.use_scheduler(egress_);
  received_at_ = sent_at_ = SteadyClock::now();
  stuck_until_ = stall_timeout_.deadline();
  read();
  write();
}

void TcpPeer::read_later() {
  asio::post(io_, [this] {
    const std::lock_guard lock(mutex_);
    read();
  });
}

void TcpPeer::write_later() {
  asio::post(io_, [this] {
    const std::lock_guard lock(mutex_);
    write();
  });
}

void TcpPeer::read() {
  awaits_receive_ = false;
  for (int turn = 0; turn < kTurnsMax; ++turn) {
    if (!stream_ || awaits_readable_) return;
    const auto space = reader_.space();
    if (!space.ok()) return lose(space.error().cause);
    if (space->empty()) {
      awaits_receive_ = true;
      return;
    }
    const auto count = stream_->read(*space);
    if (!count.ok()) return lose(count.error().cause);
    if (*count == 0) return wait_readable();
    reader_.fill(*count);
  }
  read_later();
}

void TcpPeer::write() {
  write_up_to(std::numeric_limits<std::size_t>::max());
}

void TcpPeer::write_up_to(std::size_t bytes_max) {
  for (int turn = 0; turn < kTurnsMax; ++turn) {
    if (!stream_ || awaits_writable_) return;
    const auto pieces = queue_.next();
    const std::size_t bytes = pieces[0].size() + pieces[1].size();
    if (bytes > bytes_max) break;
    const auto count = stream_->write(pieces);
    if (!count.ok()) {
      awaits_readable_ = false;  // data that the peer sent before the loss is still delivered
      read();
      return lose(count.error().cause);
    }
    queue_.taken(*count);
    bytes_max -= *count;
    if (stream_->blocked()) return wait_writable();
    if (bytes == 0) return;
  }
  write_later();
}

void TcpPeer::wait_readable() {
  awaits_readable_ = true;
  if (stream_->shares_memory()) return arm_notification();
  stream_->socket().async_wait(Socket::wait_read, [this](const boost::system::error_code&) {
    const std::lock_guard lock(mutex_);
    awaits_readable_ = false;
    read();  // reports the error, if any
  });
}

void TcpPeer::wait_writable() {
  awaits_writable_ = true;
  if (stream_->shares_memory()) return arm_notification();
  stream_->socket().async_wait(Socket::wait_write, [this](const boost::system::error_code&) {
    const std::lock_guard lock(mutex_);
    awaits_writable_ = false;
    write();
  });
}

// One notification may mean that there is data to read, space to write, or both.
void TcpPeer::arm_notification() {
  if (std::exchange(awaits_notification_, true)) return;
  stream_->socket().async_wait(Socket::wait_read, [this](const boost::system::error_code&) {
    const std::lock_guard lock(mutex_);
    awaits_notification_ = awaits_readable_ = awaits_writable_ = false;
    if (!stream_) return;
    stream_->receive_notifications();
    read();
    write();
  });
}

void TcpPeer::tick(SteadyClock::time_point now, bool overslept) {
  const std::lock_guard lock(mutex_);
  if (!stream_) return;
  if (overslept || awaits_receive_ || stream_->received_bytes() != received_bytes_) {
    received_bytes_ = stream_->received_bytes();
    received_at_ = now;
  } else if (now - received_at_ > std::chrono::duration<double>(patience_s_)) {
    return lose(fmt::format("no heartbeat for {:g} s: the process is frozen or the network is down",
                            patience_s_));
  }
  update_bandwidth(now);
  const bool has_moved = overslept || stream_->sent_bytes() != sent_bytes_;
  const bool is_idle = queue_.idle() && !stream_->blocked();
  if (has_moved || is_idle) {
    sent_bytes_ = stream_->sent_bytes();
    stuck_until_ = stall_timeout_.deadline();
  } else if (stuck_until_.passed()) {
    return lose(fmt::format("it has received nothing of a message for {:.3g} s",
                            stall_timeout_.timeout_s()));
  }
  if (has_moved) {
    sent_at_ = now;
  } else if (is_idle && now - sent_at_ >= kBetweenHeartbeats) {
    queue_.push_heartbeat();
    write();
  }
}

EgressScheduler::Sent TcpPeer::sent() {
  const std::lock_guard lock(mutex_);
  if (stream_ && !stream_->is_local()) {
    sent_.sent_bytes = stream_->sent_bytes();
    sent_.acknowledged_bytes = std::max(sent_.acknowledged_bytes, stream_->acknowledged_bytes());
  } else {
    sent_.sent_bytes = sent_.acknowledged_bytes;  // nothing is in transit to a lost peer
  }
  return sent_;
}

void TcpPeer::update_bandwidth(SteadyClock::time_point now) {
  bandwidth_.look(now, stream_->sent_bytes(), stream_->blocked());
  if (!bandwidth_.bytes_per_s()) return;
  queue_.set_piece_bytes(bandwidth_.bytes_in(kPieceTime, kPieceBytesMin, kPieceBytesMax));
  stream_->limit_unsent(bandwidth_.bytes_in(kUnsentTime, kUnsentMin, kUnsentMax));
}

void TcpPeer::lose(const std::string& cause) {
  stream_.reset();
  mailbox_.lose(cause);
  queue_.lose(cause);
}

void TcpPeer::leave() {
  const std::lock_guard lock(mutex_);
  if (stream_) stream_->leave();
  lose("this rank disconnected");
}

}  // namespace motley
