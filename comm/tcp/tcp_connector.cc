#include "comm/tcp/tcp_connector.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include <boost/asio/error.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;

// An attempt that is older than this counts as unanswered: on a LAN one takes a millisecond.
constexpr std::chrono::milliseconds kAnswer{900};

ConnectState state_of(const boost::system::error_code& failure) {
  if (failure == asio::error::connection_refused || failure == asio::error::connection_reset) {
    return ConnectState::kRefused;
  }
  return failure == asio::error::timed_out ? ConnectState::kSilent : ConnectState::kNoRoute;
}

}  // namespace

TcpConnector::TcpConnector(asio::io_context& io,
                           const TcpGroup& group,
                           Rank peer,
                           asio::ip::tcp::endpoint source,
                           asio::ip::tcp::endpoint target,
                           std::chrono::milliseconds pause,
                           Reached reached,
                           Refused refused)
    : group_(group),
      peer_(peer),
      source_(std::move(source)),
      target_(std::move(target)),
      pause_(pause),
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
  if (failure) {
    note(ConnectState::kNoRoute, failure.message());
    return try_again(failure.message());
  }
  calls_at_ = SteadyClock::now();
  socket_.async_connect(target_, [this](const boost::system::error_code& connected) {
    if (connected != asio::error::operation_aborted) on_connected(connected);
  });
}

void TcpConnector::stop() {
  is_over_ = true;
  if (handshake_ != nullptr) std::exchange(handshake_, nullptr)->cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
}

void TcpConnector::on_connected(const boost::system::error_code& failure) {
  if (is_over_) return;
  calls_at_.reset();
  note(failure ? state_of(failure) : ConnectState::kAnswers, failure ? failure.message() : "");
  if (failure) return try_again(failure.message());
  const auto accept = [peer = peer_](const Hello& hello) -> Result<void> {
    if (hello.from == peer) return {};
    return Error{ErrorCode::kPeer, "a hello from another rank",
                 fmt::format("rank {} answered", hello.from.value), ""};
  };
  const auto done = [this](const Result<Hello>& hello) {
    const auto handshake = std::exchange(handshake_, nullptr);
    if (!hello.ok() && hello.error().code == ErrorCode::kUnauthorised) {
      return refused_(peer_, hello.error().cause);
    }
    if (!hello.ok()) return try_again(hello.error().cause);
    is_over_ = true;
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
  timer_.expires_after(pause_);
  timer_.async_wait([this](const boost::system::error_code& stopped) {
    if (!stopped && !is_over_) start();
  });
}

void TcpConnector::note(ConnectState state, const std::string& words) {
  if (!since_ || state != state_) since_ = SteadyClock::now();
  state_ = state;
  words_ = words;
}

std::optional<MissingPeer> TcpConnector::missing(SteadyClock::time_point now) const {
  if (is_over_) return {};
  const auto seconds_since = [&](SteadyClock::time_point since) {
    return std::chrono::duration<double>(now - since).count();
  };
  MissingPeer peer{peer_, fmt::format("{}:{}", target_.address().to_string(), target_.port()),
                   state_, words_, since_ ? seconds_since(*since_) : 0};
  if (calls_at_ && now - *calls_at_ > kAnswer) {
    peer.state = ConnectState::kSilent;
    peer.words.clear();
    peer.since_s = seconds_since(*calls_at_);
    return peer;
  }
  if (!since_) return {};
  return peer;
}

}  // namespace motley
