#include "watch/http/http_connection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <utility>
#include <variant>

#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr double kDrain_s = 1.0;
constexpr std::size_t kDrainBytesMax = std::size_t{256} << 10;

std::chrono::nanoseconds seconds(double s) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(s));
}

std::string_view text(boost::beast::string_view view) {
  return {view.data(), view.size()};
}

// The security headers of every response: no caching, no referrer, and only same-origin resources.
template <class Fields>
void say_rules(Fields& fields) {
  fields.set(http::field::cache_control, "no-store");
  fields.set("Content-Security-Policy",
             "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  fields.set("Cross-Origin-Opener-Policy", "same-origin");
  fields.set("Cross-Origin-Resource-Policy", "same-origin");
  fields.set("Referrer-Policy", "no-referrer");
  fields.set("X-Content-Type-Options", "nosniff");
}

template <class Fields>
void give_cookie(Fields& fields, const AccessRules& access_rules) {
  fields.set(http::field::set_cookie, cookie_name(access_rules) + "=" + access_rules.token +
                                          "; HttpOnly; SameSite=Strict; Path=/");
}

template <class Head>
RequestHead decisive(const Head& head, bool has_body) {
  const auto more_than_one = [&](auto field) { return head.count(field) > 1; };
  return {
      .method = text(head.method_string()),
      .target = text(head.target()),
      .host = text(head[http::field::host]),
      .origin = text(head[http::field::origin]),
      .fetch_site = text(head["Sec-Fetch-Site"]),
      .cookie = text(head[http::field::cookie]),
      .authorization = text(head[http::field::authorization]),
      .has_body = has_body,
      .repeats_a_field = more_than_one(http::field::host) || more_than_one(http::field::origin) ||
                         more_than_one("Sec-Fetch-Site") || more_than_one(http::field::cookie) ||
                         more_than_one(http::field::authorization)};
}

}  // namespace

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, const SharedByConnections& shared)
    : shared_(shared), stream_(std::move(socket)), buffer_(2 * shared.limits.head_bytes) {}

void HttpConnection::start() {
  read_head();
}

void HttpConnection::read_head() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.head_bytes));
  stream_.expires_after(seconds(shared_.limits.request_s));
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const boost::system::error_code& failure,
                                                      std::size_t) { self->take(failure); });
}

void HttpConnection::take(boost::system::error_code failure) {
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) {
    return respond_and_close({431, "the head of the request is too long"});
  }
  if (failure == http::error::body_limit) return respond_and_close(refused_body());
  if (failure && failure.category() == make_error_code(http::error::bad_method).category() &&
      failure != http::error::end_of_stream && failure != http::error::partial_message) {
    return respond_and_close({400, "not an HTTP/1.1 request"});
  }
  if (failure) return close();
  const Head& head = parser_->get();
  const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
  const auto decided = admit(decisive(head, has_body), shared_.access_rules);
  if (const auto* refused = std::get_if<Refused>(&decided)) return respond_and_close(*refused);
  if (!shared_.places->admit(shared_from_this())) {
    return respond_and_close({503, "too many open pages of this run: close some of them"});
  }
  respond(head, std::get<Admitted>(decided));
}

void HttpConnection::respond(const Head& head, const Admitted& admitted) {
  if (admitted.path == kLivePath && !admitted.head_only) return start_live_feed(head, admitted);
  if (admitted.path == kLivePath) {
    return write({200, "text/event-stream", ""}, head, &admitted);
  }
  shared_.feed->refresh();
  write(answer(admitted, text(head[http::field::accept]), *shared_.source), head, &admitted);
}

void HttpConnection::write(Answer answer, const Head& head, const Admitted* admitted) {
  response_.emplace(static_cast<http::status>(answer.status), 11);
  Response& response = *response_;
  say_rules(response);
  response.set(http::field::content_type,
               beast::string_view(answer.type.data(), answer.type.size()));
  if (answer.status == 405) response.set(http::field::allow, "GET, HEAD");
  if (admitted != nullptr && admitted->has_token_in_address)
    give_cookie(response, shared_.access_rules);
  response.keep_alive(!drains_ && head.keep_alive());
  response.content_length(answer.body.size());
  if (admitted == nullptr || !admitted->head_only) response.body() = std::move(answer.body);
  stream_.expires_after(seconds(shared_.limits.write_s));
  http::async_write(stream_, response,
                    [self = shared_from_this()](const boost::system::error_code& failure,
                                                std::size_t) { self->written(failure); });
}

void HttpConnection::written(boost::system::error_code failure) {
  const bool pending_restart = !failure && response_->keep_alive();
  response_.reset();
  if (pending_restart) return read_head();
  if (failure) return close();
  boost::system::error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(seconds(kDrain_s));
  drain();
}

void HttpConnection::respond_and_close(const Refused& refused) {
  drains_ = true;
  const bool head_only = parser_->is_header_done() && parser_->get().method() == http::verb::head;
  const Admitted not_admitted{.path = {}, .query = {}, .head_only = head_only};
  write(refusal(refused), Head{}, &not_admitted);
}

// Reads and discards what remains: closing a socket with unread data resets the connection, and the
// client could lose the response.
void HttpConnection::drain() {
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(buffer_.max_size()),
      [self = shared_from_this()](const boost::system::error_code& failure, std::size_t bytes) {
        self->drained_bytes_ += bytes;
        if (failure || self->drained_bytes_ > kDrainBytesMax) return self->close();
        self->drain();
      });
}

void HttpConnection::start_live_feed(const Head& head, const Admitted& admitted) {
  http::response<http::empty_body> response(http::status::ok, 11);
  say_rules(response);
  response.set(http::field::content_type, "text/event-stream");
  if (admitted.has_token_in_address) give_cookie(response, shared_.access_rules);
  response.keep_alive(false);
  std::ostringstream opening;
  opening << response.base();
  stream_.expires_never();  // ended by check() or by the client
  send(std::make_shared<const std::string>(opening.str()));
  shared_.feed->add(shared_from_this(), text(head["Last-Event-ID"]));
  watch_for_end();
}

void HttpConnection::send(std::shared_ptr<const std::string> text) {
  unsent_bytes_ += text->size();
  if (unsent_bytes_ > shared_.limits.unsent_bytes) return close();
  unsent_.push_back(std::move(text));
  if (unsent_.size() == 1) send_next();
}

void HttpConnection::send_next() {
  began_writing_ = SteadyClock::now();
  asio::async_write(
      stream_, asio::buffer(*unsent_.front()),
      [self = shared_from_this()](const boost::system::error_code& failure, std::size_t) {
        if (failure) return self->close();
        self->unsent_bytes_ -= self->unsent_.front()->size();
        self->unsent_.pop_front();
        if (!self->unsent_.empty()) self->send_next();
      });
}

void HttpConnection::check(SteadyClock::time_point now) {
  if (!unsent_.empty() && now - began_writing_ > seconds(shared_.limits.write_s)) close();
}

// A browser sends nothing on a live stream; end of file means that the page was closed.
void HttpConnection::watch_for_end() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(1),
                          [self = shared_from_this()](const boost::system::error_code&,
                                                      std::size_t) { self->close(); });
}

void HttpConnection::leave() {
  close();
}

void HttpConnection::close() {
  stream_.close();
}

}  // namespace motley
