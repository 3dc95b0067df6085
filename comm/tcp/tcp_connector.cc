#include "comm/tcp/tcp_connector.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include <boost/asio/error.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kBetweenAttempts{100};

}  // namespace

TcpConnector::TcpConnector(asio::io_context& io,
                           const TcpGroup& group,
                           Rank peer,
                           asio::ip::tcp::endpoint source,
                           asio::ip::tcp::endpoint target,
                           Reached reached,
                           Refused refused)
    : group_(group),
      peer_(peer),
      source_(std::move(source)),
      target_(std::move(target)),
      reached_(std::move(reached)),
      refused_(std::move(refused)),
      socket_(io),
      timer_(io) {}

TcpConnector::~TcpConnector() {
  if (handshake_ != nullptr) handshake_->cancel();
}

void TcpConnector::start() {
  boost::system::error_code failure;
  socket_.open(target_.protocol(), failure);
  if (!failure && source_.protocol() == target_.protocol()) socket_.bind(source_, failure);
  if (failure) return try_again(failure.message());
  socket_.async_connect(target_, [this](const boost::system::error_code& connected) {
    if (connected != asio::error::operation_aborted) on_connected(connected);
  });
}

void TcpConnector::on_connected(const boost::system::error_code& failure) {
  if (failure) return try_again(failure.message());
  const auto accept = [peer = peer_](const Hello& hello) -> Result<void> {
    if (hello.from == peer) return {};
    return Error{ErrorCode::kPeer, "a hello of another rank",
                 fmt::format("rank {} answered", hello.from.value), ""};
  };
  const auto done = [this](const Result<Hello>& hello) {
    const auto handshake = std::exchange(handshake_, nullptr);
    if (!hello.ok() && hello.error().code == ErrorCode::kUnauthorised) {
      return refused_(peer_, hello.error().cause);
    }
    if (!hello.ok()) return try_again(hello.error().cause);
    reached_(peer_, handshake->take_stream());
  };
  handshake_ = TcpHandshake::start(
      TcpStream(std::exchange(socket_, asio::ip::tcp::socket(timer_.get_executor())),
                group_.new_session(TlsSession::Role::kClient)),
      group_.hello_to(peer_), /*initiated=*/true, accept, done);
}

void TcpConnector::try_again(const std::string& why) {
  last_failure_ = why;
  boost::system::error_code ignored;
  socket_.close(ignored);
  timer_.expires_after(kBetweenAttempts);
  timer_.async_wait([this](const boost::system::error_code& stopped) {
    if (!stopped) start();
  });
}

}  // namespace motley
