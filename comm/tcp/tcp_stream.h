// TcpStream: one connected non-blocking socket, with or without TLS. Between two processes that
// share memory, the bytes go through that memory; the socket then carries only notifications and
// reports a closed peer. Used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "comm/tcp/byte_queue.h"
#include "comm/tcp/shared_ring.h"
#include "comm/tcp/tls_session.h"

namespace motley {

// Without a limit the system would buffer megabytes on a slow link.
inline constexpr std::size_t kUnsentMax = std::size_t{128} << 10;

class TcpStream {
 public:
  // `tls`: null for none. Takes over the connected socket.
  TcpStream(boost::asio::ip::tcp::socket socket, std::unique_ptr<TlsSession> tls);

  // All errors are kPeer with the cause as text; the stream is then unusable. Returns true once
  // both ends have proved that they hold the key; at once without TLS.
  [[nodiscard]] Result<bool> handshake();
  // Returns the number of bytes read; 0: wait until the socket is readable, or for a notification.
  // REQUIRES: handshake() returned true.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  // Returns the number of bytes accepted of both pieces together. Bytes that TLS holds back leave
  // with the next call, which may have empty pieces. Bytes not accepted must be passed again
  // unchanged. REQUIRES: handshake() returned true.
  [[nodiscard]] Result<std::size_t> write(std::array<std::span<const std::byte>, 2> pieces);

  // The last handshake() or write() could not send everything: wait until the socket is writable,
  // or for a notification, then call it again.
  [[nodiscard]] bool blocked() const { return blocked_; }

  // Returns whether the connection has one address at both ends, so that it stays inside this
  // machine.
  [[nodiscard]] bool ends_share_address() const;
  // Continues without TLS after the last byte read and the last one written. Both ends must have
  // announced that they share an address. kPeer if the other end has sent more TLS data. REQUIRES:
  // !blocked().
  [[nodiscard]] Result<void> use_local_channel();

  // Returns whether use_local_channel() was called.
  [[nodiscard]] bool is_local() const { return is_local_; }

  // Continues through this memory; the other end must do the same. REQUIRES: is_local().
  void share(RingPair rings) { rings_.emplace(std::move(rings)); }

  // Returns whether share() was called. Both directions then wait for notifications, which make the
  // socket readable; the caller calls receive_notifications() first, and then both may continue.
  [[nodiscard]] bool shares_memory() const { return rings_.has_value(); }

  void receive_notifications();

  // Limits the unsent bytes that the system buffers: any later message, even an urgent one, waits
  // for them.
  void limit_unsent(std::size_t bytes_max);

  // Limits the pause after which the system resends unacknowledged bytes, which doubles with each
  // attempt and would make an interruption last up to twice as long. Between 1 s and 120 s; only
  // where the system can (Linux since 6.15).
  void resend_within(double seconds);

  // Enlarges the buffers, once the other end is authenticated.
  void grow();

  // Closes gracefully as far as possible without waiting: sends what the socket accepts, then the
  // end of the stream. Received bytes are discarded, because closing over unread bytes resets the
  // connection, and the other end could then lose data that it has not read yet.
  void leave();

  // Bytes sent and received so far; a change shows that the connection is alive.
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }

  // Returns whether this system reports the bytes that the other end has acknowledged.
  [[nodiscard]] static bool reports_acknowledged();
  // The acknowledged part of sent_bytes(). REQUIRES: reports_acknowledged().
  [[nodiscard]] std::uint64_t acknowledged_bytes();

  [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

  [[nodiscard]] boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  [[nodiscard]] Result<std::size_t> receive(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> transmit(std::array<std::span<const std::byte>, 2> pieces);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<std::size_t> read_shared(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> write_shared(std::array<std::span<const std::byte>, 2> pieces);
  void notify_peer();

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsSession> tls_;
  ByteQueue ahead_;  // without TLS: bytes read from the socket but not requested yet
  std::optional<RingPair> rings_;
  std::optional<Error> gone_;  // the other end's loss, found while notifying
  bool blocked_ = false;
  bool is_local_ = false;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t received_bytes_ = 0;
};

}  // namespace motley
