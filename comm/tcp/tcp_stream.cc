#include "comm/tcp/tcp_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "base/check.h"

namespace motley {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kFirstBytes = std::size_t{16} << 10;
constexpr std::size_t kAheadBytes = std::size_t{64} << 10;
constexpr std::size_t kJoinedMax = std::size_t{4} << 10;  // two small pieces become one record
// Copied between two checks whether the other end sleeps, so that both ends copy concurrently.
constexpr std::size_t kSharedMax = std::size_t{128} << 10;
// The most to encrypt or copy before other peers are served.
constexpr std::size_t kTakenMax = std::size_t{1} << 20;

bool is_would_block(const boost::system::error_code& failure) {
  return failure == asio::error::would_block || failure == asio::error::try_again ||
         failure == asio::error::interrupted;
}

Error connection_error(const boost::system::error_code& failure) {
  const bool ended = failure == asio::error::eof;
  return {ErrorCode::kPeer, "the connection",
          ended ? "it closed the connection" : failure.message(), ""};
}

}  // namespace

TcpStream::TcpStream(asio::ip::tcp::socket socket, std::unique_ptr<TlsSession> tls)
    : socket_(std::move(socket)), tls_(std::move(tls)), ahead_(kFirstBytes) {
  boost::system::error_code ignored;  // the next operation on the socket reports its error
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  limit_unsent(kUnsentMax);
}

void TcpStream::limit_unsent(std::size_t bytes_max) {
#ifdef TCP_NOTSENT_LOWAT
  // If it fails, urgent messages only have a longer delay.
  const int bytes = static_cast<int>(std::min(bytes_max, kUnsentMax));
  (void)setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
#else
  (void)bytes_max;
#endif
}

void TcpStream::resend_within(double seconds) {
#ifdef __linux__
  constexpr int kTcpRtoMaxMs = 44;  // TCP_RTO_MAX_MS, which older headers lack
  const int pause_ms = static_cast<int>(std::clamp(seconds, 1.0, 120.0) * 1e3);
  (void)setsockopt(socket_.native_handle(), IPPROTO_TCP, kTcpRtoMaxMs, &pause_ms, sizeof pause_ms);
#else
  (void)seconds;
#endif
}

bool TcpStream::reports_acknowledged() {
#ifdef __linux__
  return true;
#else
  return false;
#endif
}

std::uint64_t TcpStream::acknowledged_bytes() {
  int on_the_way = 0;
#ifdef __linux__
  if (ioctl(socket_.native_handle(), TIOCOUTQ, &on_the_way) != 0) on_the_way = 0;
#endif
  return sent_bytes_ - std::min(sent_bytes_, static_cast<std::uint64_t>(on_the_way));
}

bool TcpStream::ends_share_address() const {
  boost::system::error_code gone;  // the next operation reports the error
  const auto here = socket_.local_endpoint(gone).address();
  if (gone) return false;
  const auto there = socket_.remote_endpoint(gone).address();
  return !gone && here == there;
}

Result<void> TcpStream::use_local_channel() {
  is_local_ = true;
  if (tls_ == nullptr) return {};
  MOTLEY_ASSIGN(const auto rest, tls_->stop_encryption());
  const auto space = ahead_.space();
  MOTLEY_CHECK(rest.size() <= space.size(), "{} bytes for a buffer of {}", rest.size(),
               space.size());
  std::ranges::copy(rest, space.begin());
  ahead_.add(rest.size());
  tls_.reset();
  return {};
}

void TcpStream::grow() {
  ahead_.grow(kAheadBytes);
  if (tls_ != nullptr) tls_->grow();
}

Result<std::size_t> TcpStream::receive(std::span<std::byte> into) {
  boost::system::error_code failure;
  const std::size_t count = socket_.read_some(asio::buffer(into.data(), into.size()), failure);
  if (is_would_block(failure)) return std::size_t{0};
  if (failure) return connection_error(failure);
  received_bytes_ += count;
  return count;
}

Result<std::size_t> TcpStream::transmit(std::array<std::span<const std::byte>, 2> pieces) {
  const std::array buffers = {asio::const_buffer(pieces[0].data(), pieces[0].size()),
                              asio::const_buffer(pieces[1].data(), pieces[1].size())};
  blocked_ = false;
  if (asio::buffer_size(buffers) == 0) return std::size_t{0};
  boost::system::error_code failure;
  const std::size_t count = socket_.write_some(buffers, failure);
  if (failure && !is_would_block(failure)) return connection_error(failure);
  blocked_ = count < asio::buffer_size(buffers);
  sent_bytes_ += count;
  return count;
}

// Sends TLS's pending output.
Result<void> TcpStream::flush() {
  do {
    MOTLEY_ASSIGN(const std::size_t count, transmit({tls_->outgoing(), {}}));
    tls_->sent(count);
  } while (!blocked_ && !tls_->outgoing().empty());
  return {};
}

Result<bool> TcpStream::handshake() {
  if (tls_ == nullptr) return true;
  for (;;) {
    const Result<bool> proved = tls_->handshake();
    MOTLEY_TRY(flush());  // also an alert with the reason
    if (!proved.ok() || *proved) return proved;
    MOTLEY_ASSIGN(const std::size_t count, receive(tls_->space()));
    if (count == 0) return false;
    tls_->received(count);
  }
}

// The peer's last bytes are in shared memory before its socket closes.
Result<std::size_t> TcpStream::read_shared(std::span<std::byte> into) {
  MOTLEY_ASSIGN(const RingMove move,
                rings_->reader().read(into.first(std::min(into.size(), kSharedMax))));
  if (move.wakes_peer) notify_peer();
  if (move.count == 0 && gone_.has_value()) return *gone_;
  received_bytes_ += move.count;
  return move.count;
}

Result<std::size_t> TcpStream::write_shared(std::array<std::span<const std::byte>, 2> pieces) {
  if (gone_.has_value()) return *gone_;
  std::size_t taken = 0;
  blocked_ = false;
  for (auto piece : pieces) {
    while (!piece.empty() && !blocked_ && taken < kTakenMax) {
      const auto turn = piece.first(std::min(piece.size(), kSharedMax));
      MOTLEY_ASSIGN(const RingMove move, rings_->writer().write(turn));
      if (move.wakes_peer) notify_peer();
      taken += move.count;
      piece = piece.subspan(move.count);
      blocked_ = move.count < turn.size();
    }
  }
  sent_bytes_ += taken;
  return taken;
}

// If the socket is full, it already contains notifications that the other end has not read.
void TcpStream::notify_peer() {
  constexpr std::array kBell = {std::byte{1}};
  boost::system::error_code failure;
  socket_.write_some(asio::buffer(kBell), failure);
  if (failure && !is_would_block(failure)) gone_ = connection_error(failure);
}

void TcpStream::receive_notifications() {
  std::array<std::byte, 64> notes;
  boost::system::error_code failure;
  do {
    socket_.read_some(asio::buffer(notes), failure);
  } while (!failure);
  if (!is_would_block(failure)) gone_ = connection_error(failure);
}

Result<std::size_t> TcpStream::read(std::span<std::byte> into) {
  if (rings_.has_value()) return read_shared(into);
  if (tls_ != nullptr) {
    for (;;) {
      MOTLEY_ASSIGN(const std::size_t count, tls_->read(into));
      if (count > 0) return count;
      MOTLEY_ASSIGN(const std::size_t came, receive(tls_->space()));
      if (came == 0) return std::size_t{0};
      tls_->received(came);
    }
  }
  if (ahead_.bytes().empty()) {
    const auto space = ahead_.space();
    if (into.size() >= space.size()) return receive(into);
    MOTLEY_ASSIGN(const std::size_t came, receive(space));
    ahead_.add(came);
  }
  const std::size_t count = std::min(into.size(), ahead_.bytes().size());
  std::memcpy(into.data(), ahead_.bytes().data(), count);
  ahead_.drop(count);
  return count;
}

Result<std::size_t> TcpStream::write(std::array<std::span<const std::byte>, 2> pieces) {
  if (rings_.has_value()) return write_shared(pieces);
  if (tls_ == nullptr) return transmit(pieces);
  std::array<std::byte, kJoinedMax> joined;
  if (!pieces[1].empty() && pieces[0].size() + pieces[1].size() <= kJoinedMax) {
    const auto end = std::ranges::copy(pieces[0], joined.begin()).out;
    pieces = {std::span(joined.begin(), std::ranges::copy(pieces[1], end).out), {}};
  }
  std::size_t taken = 0;
  for (auto piece : pieces) {
    while (!piece.empty() && taken < kTakenMax) {
      MOTLEY_ASSIGN(const std::size_t count, tls_->write(piece));
      piece = piece.subspan(count);
      taken += count;
      if (count > 0) continue;
      MOTLEY_TRY(flush());
      if (blocked_) return taken;
    }
  }
  MOTLEY_TRY(flush());
  return taken;
}

void TcpStream::leave() {
  boost::system::error_code ignored;
  if (tls_ != nullptr && !flush().ok()) return;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  std::array<std::byte, 4096> dropped{};
  constexpr int kReadsMax = 1024;
  for (int reads = 0; reads < kReadsMax; ++reads) {
    const auto count = receive(dropped);
    if (!count.ok() || *count == 0) return;
  }
}

}  // namespace motley
