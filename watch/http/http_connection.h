// One connection of a browser: a sequence of requests, or a live stream. Boost types stay in the
// http_* files. Kept alive by its pending operations; runs on the server's thread.
//
// A client cannot hold a connection for long: the head of a request must arrive within `request_s`,
// a response must be received within `write_s`, and the unsent part of a live stream is bounded.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "watch/http/admission.h"
#include "watch/http/answers.h"
#include "watch/http/connection_quota.h"
#include "watch/http/live_feed.h"

namespace motley {

struct ConnectionLimits {
  double request_s = 10.0;
  double write_s = 20.0;
  std::size_t head_bytes = 8192;
  std::size_t unsent_bytes = std::size_t{8} << 20;  // of a live stream
};

// Shared by all connections of a server; outlives them.
struct SharedByConnections {
  AccessRules access_rules;
  RunSource* source;
  LiveFeed* feed;
  ConnectionQuota* places;
  ConnectionLimits limits;
};

class HttpConnection : public LiveStream,
                       public LimitedConnection,
                       public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(boost::asio::ip::tcp::socket socket, const SharedByConnections& shared);

  void start();

  void send(std::shared_ptr<const std::string> text) override;
  void check(SteadyClock::time_point now) override;
  void leave() override;

 private:
  using Head = boost::beast::http::request<boost::beast::http::empty_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;

  void read_head();
  void take(boost::system::error_code failure);
  void respond(const Head& head, const Admitted& admitted);
  void write(Answer answer, const Head& head, const Admitted* admitted);
  void written(boost::system::error_code failure);
  void start_live_feed(const Head& head, const Admitted& admitted);
  void send_next();
  void watch_for_end();
  void respond_and_close(const Refused& refused);
  void drain();
  void close();

  const SharedByConnections& shared_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  std::optional<Response> response_;  // while it is being written
  bool drains_ = false;               // no further responses on this connection
  std::size_t drained_bytes_ = 0;
  // Of a live stream. The first message is being written.
  std::deque<std::shared_ptr<const std::string>> unsent_;
  std::size_t unsent_bytes_ = 0;
  SteadyClock::time_point began_writing_;
};

}  // namespace motley
