// TcpHandshake: authenticates the rank at the other end of a connected socket: the TLS handshake,
// if there is a secret, then a hello each way. The dialling end speaks first; the dialled end does
// not answer a hello that it rejects. If both hellos say that the ranks are on one machine, TLS
// ends after them: both ends are authenticated, and later traffic stays inside the machine. The two
// then share memory if the dialling end offers some and the other can open it.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tcp_stream.h"
#include "comm/transport/shared_memory.h"

namespace motley {

// Kept alive by its callbacks and by the owner that may cancel it, whichever lives longer: hence
// shared_ptr. Lives on the thread that runs the socket's io_context.
class TcpHandshake : public std::enable_shared_from_this<TcpHandshake> {
 public:
  // Receives the other end's hello, after which the stream can be taken, or the error. Called once
  // unless cancelled.
  using Done = std::function<void(Result<Hello>)>;
  // Decides whether a hello that passed check_hello() is acceptable.
  using Accept = std::function<Result<void>(const Hello&)>;

  // `mine.to` is the dialled rank; unset if the other end dialled. `mine.local`: whether to
  // announce local mode if both ends share an address.
  static std::shared_ptr<TcpHandshake> start(
      TcpStream stream, const Hello& mine, bool initiated, Accept accept, Done done);

  // Closes the connection; afterwards done is not called.
  void cancel();

  // REQUIRES: done was called with a hello.
  [[nodiscard]] TcpStream take_stream() { return std::move(*stream_); }

 private:
  TcpHandshake(TcpStream stream, const Hello& mine, bool initiated, Accept accept, Done done);
  void proceed();
  void wait(boost::asio::ip::tcp::socket::wait_type for_what);
  [[nodiscard]] Result<bool> advance();
  [[nodiscard]] Result<bool> exchange_hellos();
  [[nodiscard]] Result<bool> send_hello();
  [[nodiscard]] Result<bool> receive_hello();
  void offer_memory();
  void open_memory();
  [[nodiscard]] Result<void> use_local_channel();

  std::optional<TcpStream> stream_;
  Hello mine_;
  const bool initiated_;
  Accept accept_;
  Done done_;
  bool proved_ = false;
  std::size_t sent_bytes_ = 0;
  std::size_t received_bytes_ = 0;
  std::array<std::byte, kHelloBytes> received_{};
  Hello theirs_;
  std::optional<SharedMemory> memory_;  // offered or opened
};

}  // namespace motley
