// TcpHandshake: from a connected socket to a rank that has shown who it is: the TLS handshake,
// where there is one, then a hello each way. The end that connected speaks first; the other says
// nothing to somebody whose hello it does not accept. When both hellos say that the ranks are on
// one machine TLS ends behind them: who belongs to the launch has been shown, and nobody outside
// sees the rest. The two then share memory, where the end that connected has some to offer and the
// other can open it.
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

// Held by its callbacks and by the one who may cancel it, whichever ends last: hence shared_ptr.
// Lives on the thread that runs the socket's io_context.
class TcpHandshake : public std::enable_shared_from_this<TcpHandshake> {
 public:
  // The other end's hello, after which the stream can be taken; or why there is none. Called once,
  // unless cancelled.
  using Done = std::function<void(Result<Hello>)>;
  // Accept judges whether a hello that passed check_hello() is acceptable.
  using Accept = std::function<Result<void>(const Hello&)>;

  // `mine.to` is the rank that was called; without one the other end called. `mine.local`:
  // whether to say so when both ends share an address.
  static std::shared_ptr<TcpHandshake> start(
      TcpStream stream, const Hello& mine, bool initiated, Accept accept, Done done);

  // Closes the connection; done is not called any more.
  void cancel();

  // REQUIRES: done was called with a hello.
  [[nodiscard]] TcpStream take_stream() { return std::move(*stream_); }

 private:
  TcpHandshake(TcpStream stream, const Hello& mine, bool initiated, Accept accept, Done done);
  void go_on();
  void wait(boost::asio::ip::tcp::socket::wait_type for_what);
  [[nodiscard]] Result<bool> advance();
  [[nodiscard]] Result<bool> exchange_hellos();
  [[nodiscard]] Result<bool> send_hello();
  [[nodiscard]] Result<bool> receive_hello();
  void offer_memory();
  void open_memory();
  [[nodiscard]] Result<void> go_local();

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
  std::optional<SharedMemory> memory_;  // that it offers, or has opened
};

}  // namespace motley
