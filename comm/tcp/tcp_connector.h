// TcpConnector: reaches one rank that listens, trying again until it is stopped: the other end may
// be busy with strangers. It gives up only when somebody answers at that address by TLS and does
// not accept the key: a crowd at the acceptor closes connections, but only who has the address, or
// sits on the way to it, can say that. Lives on the thread that runs the io_context.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/ids.h"
#include "comm/tcp/tcp_group.h"
#include "comm/tcp/tcp_handshake.h"

namespace motley {

class TcpConnector {
 public:
  using Reached = std::function<void(Rank, TcpStream)>;
  using Refused = std::function<void(Rank, const std::string& cause)>;

  // Connects from `source` (port 0: any) to `target`. One of `reached` and `refused` is called, at
  // most once.
  TcpConnector(boost::asio::io_context& io,
               const TcpGroup& group,
               Rank peer,
               boost::asio::ip::tcp::endpoint source,
               boost::asio::ip::tcp::endpoint target,
               Reached reached,
               Refused refused);
  ~TcpConnector();
  TcpConnector(const TcpConnector&) = delete;
  TcpConnector& operator=(const TcpConnector&) = delete;

  void start();

  // Why the last attempt failed; "" before one did.
  [[nodiscard]] const std::string& last_failure() const { return last_failure_; }

 private:
  void on_connected(const boost::system::error_code& failure);
  void try_again(const std::string& why);

  const TcpGroup& group_;
  const Rank peer_;
  const boost::asio::ip::tcp::endpoint source_;
  const boost::asio::ip::tcp::endpoint target_;
  const Reached reached_;
  const Refused refused_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<TcpHandshake> handshake_;
  std::string last_failure_;
};

}  // namespace motley
