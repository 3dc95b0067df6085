// TcpAcceptor: listens for the ranks that connect to this one, and limits the effect of others.
// An unauthenticated connection costs one socket and little memory and has a few seconds to finish
// its handshake. If there are too many, the oldest is closed. So hundreds of idle connections do
// not lock out a rank that holds the key. Lives on the thread that runs the io_context.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/tcp/tcp_group.h"
#include "comm/tcp/tcp_handshake.h"

namespace motley {

class TcpAcceptor {
 public:
  using Accept = TcpHandshake::Accept;
  using Entered = std::function<void(Rank, TcpStream)>;

  // Starts to listen. kPeer if the address cannot be bound.
  [[nodiscard]] static Result<std::unique_ptr<TcpAcceptor>> open(
      boost::asio::io_context& io,
      const TcpGroup& group,
      const boost::asio::ip::tcp::endpoint& address,
      Accept accept,
      Entered entered);
  ~TcpAcceptor();
  TcpAcceptor(const TcpAcceptor&) = delete;
  TcpAcceptor& operator=(const TcpAcceptor&) = delete;

  // Starts to accept connections.
  void start();
  // Stops accepting and closes all unfinished handshakes.
  void close();
  // Closes handshakes that have taken too long. Must be called periodically.
  void tick(SteadyClock::time_point now);

  [[nodiscard]] boost::asio::ip::tcp::endpoint address() const { return address_; }

  // Why the last refused connection was refused; "" if none was.
  [[nodiscard]] const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Candidate {
    std::shared_ptr<TcpHandshake> handshake;
    boost::asio::ip::address from;
    SteadyClock::time_point since;
  };

  TcpAcceptor(boost::asio::io_context& io, const TcpGroup& group, Accept accept, Entered entered);
  void accept_next();
  void receive(boost::asio::ip::tcp::socket socket);
  void evict_for(const boost::asio::ip::address& from);
  void reject(std::list<Candidate>::iterator candidate, const std::string& why);

  const TcpGroup& group_;
  const Accept accept_;
  const Entered entered_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  boost::asio::ip::tcp::endpoint address_;
  std::list<Candidate> candidates_;  // oldest first; at most kCandidatesMax
  std::string last_refusal_;
};

}  // namespace motley
