// TcpConnector: connects to one listening rank and retries until it is stopped, because the other
// end may be busy with others. It gives up only if the peer at that address answers by TLS and
// rejects the key. A crowded acceptor only closes connections; a rejection comes from the peer
// itself or from an attacker in the path. Lives on the thread that runs the io_context.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "comm/tcp/tcp_group.h"
#include "comm/tcp/tcp_handshake.h"
#include "comm/transport/missing_peer.h"

namespace motley {

class TcpConnector {
 public:
  using Reached = std::function<void(Rank, TcpStream)>;
  using Refused = std::function<void(Rank, const std::string& cause)>;

  // Connects from `source` (port 0: any) to `target`, and again `pause` after each failed attempt.
  // Calls `reached` or `refused`, at most once.
  TcpConnector(boost::asio::io_context& io,
               const TcpGroup& group,
               Rank peer,
               boost::asio::ip::tcp::endpoint source,
               boost::asio::ip::tcp::endpoint target,
               std::chrono::milliseconds pause,
               Reached reached,
               Refused refused);
  ~TcpConnector();
  TcpConnector(const TcpConnector&) = delete;
  TcpConnector& operator=(const TcpConnector&) = delete;

  void start();
  // Ends all attempts; afterwards no callback is called.
  void stop();

  // Whether a handshake is in progress: the other end may already have accepted the connection.
  [[nodiscard]] bool is_in_handshake() const { return handshake_ != nullptr; }

  // Why the last attempt failed; "" if none has failed.
  [[nodiscard]] const std::string& last_failure() const { return last_failure_; }

  // The state of the attempts. nullopt before the first result, and after stop() or `reached`.
  [[nodiscard]] std::optional<MissingPeer> missing(SteadyClock::time_point now) const;

 private:
  void on_connected(const boost::system::error_code& failure);
  void try_again(const std::string& why);
  void note(ConnectState state, const std::string& words);

  const TcpGroup& group_;
  const Rank peer_;
  const boost::asio::ip::tcp::endpoint source_;
  const boost::asio::ip::tcp::endpoint target_;
  const std::chrono::milliseconds pause_;
  const Reached reached_;
  const Refused refused_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<TcpHandshake> handshake_;
  std::string last_failure_;
  bool is_over_ = false;                             // stopped or connected
  std::optional<SteadyClock::time_point> calls_at_;  // start of the attempt in progress
  // Of the finished attempts.
  ConnectState state_ = ConnectState::kSilent;
  std::string words_;
  std::optional<SteadyClock::time_point> since_;
};

}  // namespace motley
