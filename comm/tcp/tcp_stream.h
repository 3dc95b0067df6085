// TcpStream: one connected socket that never blocks, with TLS over it or without. Between two
// processes that share memory the bytes go through that instead, and the socket only wakes the
// other end and tells when it has gone. Used by one thread at a time.
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

// Without a bound the system takes megabytes on a slow link.
inline constexpr std::size_t kUnsentMax = std::size_t{128} << 10;

class TcpStream {
 public:
  // `tls`: null for none. Takes the socket as it is connected.
  TcpStream(boost::asio::ip::tcp::socket socket, std::unique_ptr<TlsSession> tls);

  // All errors are kPeer with the cause in words; the stream is then over.
  // True once both ends have proved that they hold the key; without TLS at once.
  [[nodiscard]] Result<bool> handshake();
  // How many bytes were read; 0: wait until the socket can be read, or for a bell. REQUIRES:
  // handshake() gave true.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  // How many bytes of the two pieces together were taken. Those that TLS holds back leave with the
  // next call, which may be with empty pieces. What was not taken must be given again unchanged.
  // REQUIRES: handshake() gave true.
  [[nodiscard]] Result<std::size_t> write(std::array<std::span<const std::byte>, 2> pieces);

  // The last handshake() or write() could not hand everything over: wait until the socket can be
  // written, or for a bell, then call it again.
  [[nodiscard]] bool blocked() const { return blocked_; }

  // Returns whether the connection has one address at both ends, which means that it stays inside
  // this machine.
  [[nodiscard]] bool ends_share_address() const;
  // Both ends have said that they share an address and go on without TLS, after the last byte read
  // and the last one written. kPeer when the other end does not. REQUIRES: !blocked().
  [[nodiscard]] Result<void> go_local();

  // Returns whether go_local() was called.
  [[nodiscard]] bool is_local() const { return is_local_; }

  // Both ends go on through this memory. REQUIRES: is_local().
  void share(RingPair rings) { rings_.emplace(std::move(rings)); }

  // Returns whether share() was called. Both directions then wait for a bell, which makes the
  // socket readable; the caller hears the bells first, and both may be able to go on.
  [[nodiscard]] bool shares_memory() const { return rings_.has_value(); }

  void hear_bells();

  // What the system may hold at most that has not left yet: whatever comes later waits for it, even
  // what is urgent.
  void keep_unsent(std::size_t bytes_max);

  // Lets the stream buffer more: the other end has shown who it is.
  void grow();

  // Leaves as politely as it can without waiting: what can leave does, and the end of the stream
  // follows. What has come is thrown away, because a system that closes over unread bytes resets
  // the connection, and then the other end may lose what it has not yet read.
  void leave();

  // The bytes that went out and came in so far are the signs of life.
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }

  // Returns whether this system tells what the other end is known to have.
  [[nodiscard]] static bool tells_acknowledged();
  // Of sent_bytes(), that. REQUIRES: tells_acknowledged().
  [[nodiscard]] std::uint64_t acknowledged_bytes();

  [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

  [[nodiscard]] boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  [[nodiscard]] Result<std::size_t> receive(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> transmit(std::array<std::span<const std::byte>, 2> pieces);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<std::size_t> read_shared(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> write_shared(std::array<std::span<const std::byte>, 2> pieces);
  void ring_bell();

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsSession> tls_;
  ByteQueue ahead_;  // without TLS: read, but not asked for yet
  std::optional<RingPair> rings_;
  std::optional<Error> gone_;  // the other end, as its bell told
  bool blocked_ = false;
  bool is_local_ = false;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t received_bytes_ = 0;
};

}  // namespace motley
