#include "watch/http/http_server.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/hex.h"
#include "base/secret.h"
#include "watch/http/http_connection.h"

namespace motley {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::size_t kTokenBytes = 16;
constexpr std::chrono::milliseconds kPause{100};  // after a failed accept

class BeastServer : public HttpServer {
 public:
  BeastServer(RunSource& source, const HttpServerOptions& options, std::string token)
      : options_(options),
        acceptor_(io_),
        tick_(io_),
        pause_(io_),
        feed_(source, options.heartbeat_s),
        places_(options.connections_max, options.unauthenticated_max),
        shared_{.access_rules = {0, std::move(token)},
                .source = &source,
                .feed = &feed_,
                .places = &places_,
                .limits = {.request_s = options.request_s, .write_s = options.write_s}} {}

  Result<void> listen() {
    boost::system::error_code failure;
    const tcp::endpoint here(asio::ip::address_v4::loopback(), options_.port);
    acceptor_.open(here.protocol(), failure);
    if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor_.bind(here, failure);
    if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
    if (!failure) shared_.access_rules.port = acceptor_.local_endpoint(failure).port();
    if (!failure) return {};
    return Error{ErrorCode::kPeer,
                 fmt::format("cannot listen on port {} of this machine", options_.port),
                 failure.message(), "leave --port out to use a free one"};
  }

  [[nodiscard]] std::uint16_t port() const override { return shared_.access_rules.port; }

  [[nodiscard]] const std::string& token() const override { return shared_.access_rules.token; }

  void serve_until(const std::vector<int>& stop_fds) override {
    std::vector<asio::posix::stream_descriptor> stops;
    stops.reserve(stop_fds.size());
    for (const int fd : stop_fds) {
      boost::system::error_code failure;
      stops.emplace_back(io_).assign(fd, failure);
      // A descriptor that cannot be polled, such as a file, is always readable.
      if (failure) return let_go(stops);
      stops.back().async_wait(asio::posix::stream_descriptor::wait_read,
                              [this](const boost::system::error_code&) { io_.stop(); });
    }
    accept_next();
    tick();
    io_.run();
    let_go(stops);
  }

 private:
  // The descriptors belong to the caller.
  static void let_go(std::vector<asio::posix::stream_descriptor>& stops) {
    for (auto& stop : stops) {
      if (stop.is_open()) stop.release();
    }
  }

  void accept_next() {
    acceptor_.async_accept([this](const boost::system::error_code& failure, tcp::socket socket) {
      if (failure) return pause();
      take(std::move(socket));
      accept_next();
    });
  }

  void pause() {
    pause_.expires_after(kPause);
    pause_.async_wait([this](const boost::system::error_code&) { accept_next(); });
  }

  void take(tcp::socket socket) {
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), shared_);
    places_.enter(connection);
    connection->start();
  }

  // A long run is read in pieces; pending requests are handled in between.
  void read_on() {
    if (is_reading_on_ || !feed_.has_more()) return;
    is_reading_on_ = true;
    asio::post(io_, [this] {
      is_reading_on_ = false;
      feed_.go_on();
      read_on();
    });
  }

  void tick() {
    feed_.tick();
    read_on();
    tick_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(options_.look_every_s)));
    tick_.async_wait([this](const boost::system::error_code&) { tick(); });
  }

  HttpServerOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer tick_;
  asio::steady_timer pause_;
  LiveFeed feed_;
  bool is_reading_on_ = false;
  ConnectionQuota places_;
  SharedByConnections shared_;
};

}  // namespace

std::string HttpServer::address(std::string_view path) const {
  return fmt::format("http://127.0.0.1:{}{}?token={}", port(), path, token());
}

Result<std::string> make_token() {
  MOTLEY_ASSIGN(const std::string secret, make_secret());
  return to_hex(std::span(secret).first(kTokenBytes));
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(RunSource& source,
                                                     const HttpServerOptions& options) {
  std::string token = options.token;
  if (token.empty()) {
    MOTLEY_ASSIGN(token, make_token());
  }
  auto server = std::make_unique<BeastServer>(source, options, std::move(token));
  MOTLEY_TRY(server->listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace motley
