// The server as strangers and browsers use it, over sockets.
#include "watch/http/http_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/watch/served_run.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(HttpServerTest, GivesThePageAndTheCookieToWhoHasTheToken) {
  serve();
  EXPECT_EQ(server_->address(),
            fmt::format("http://127.0.0.1:{}/?token={}", server_->port(), server_->token()));
  EXPECT_EQ(server_->token().size(), 32U);
  const std::string page = asked_last("/?token=" + server_->token());
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(
      page, HasSubstr(fmt::format("Set-Cookie: motley_{}={}; HttpOnly; SameSite=Strict; Path=/\r\n",
                                  server_->port(), server_->token())));
  EXPECT_THAT(page, HasSubstr("<title>Motley</title>"));
  EXPECT_THAT(asked_last("/page.js", cookie()),
              AllOf(HasSubstr("200 OK"), Not(HasSubstr("Set-Cookie"))));
}

TEST_F(HttpServerTest, GivesMetricsInTheFormatThatIsAskedFor) {
  serve();
  run_.play(7);
  const std::string bearer = "Authorization: Bearer " + server_->token() + "\r\n";
  EXPECT_THAT(asked_last("/metrics", bearer),
              AllOf(HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                    HasSubstr("motley_run_last_step 7\n"), Not(HasSubstr("# EOF"))));
  EXPECT_THAT(
      asked_last("/metrics", bearer + "Accept: application/openmetrics-text; version=1.0.0\r\n"),
      AllOf(
          HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
          HasSubstr("# EOF\n")));
  EXPECT_THAT(asked_last("/metrics"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(asked_last("/metrics", bearer + bearer), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(server_->address("/metrics"),
            fmt::format("http://127.0.0.1:{}/metrics?token={}", server_->port(), server_->token()));
}

TEST_F(HttpServerTest, EveryAnswerTellsTheBrowserItsRules) {
  serve();
  for (const std::string& answer : {asked_last("/", cookie()), asked_last("/api/state", cookie()),
                                    asked_last("/nothing", cookie()), asked_last("/")}) {
    for (const char* rule :
         {"Content-Security-Policy: default-src 'self'; ", "X-Content-Type-Options: nosniff\r\n",
          "Cache-Control: no-store\r\n", "Referrer-Policy: no-referrer\r\n",
          "Cross-Origin-Resource-Policy: same-origin\r\n"}) {
      EXPECT_THAT(answer, HasSubstr(rule));
    }
  }
}

TEST_F(HttpServerTest, AnswersSeveralRequestsOfAConnection) {
  serve();
  run_.play(3);
  PlainClient client(server_->port());
  client.say(get("/api/state", cookie()) + get("/api/history?points=10", cookie()));
  EXPECT_THAT(client.hear_until("\"step\":[1,2,3]"), HasSubstr("\"verdict\""));
  client.say(fmt::format("HEAD / HTTP/1.1\r\nHost: localhost:{}\r\n{}Connection: close\r\n\r\n",
                         server_->port(), cookie()));
  EXPECT_THAT(client.hear_all(), Not(HasSubstr("<title>")));
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, RefusesStrangers) {
  serve();
  EXPECT_THAT(asked_last("/"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(asked_last("/?token=00000000000000000000000000000000"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(asked_last("/api/live"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(asked_last("/page.js"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(asked_last("/api/state", cookie() + "Origin: http://evil.example\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(asked_last("/api/state", cookie() + "Sec-Fetch-Site: same-site\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(asked_last("/api/state", cookie() + "Host: evil.example\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(asked(fmt::format("GET / HTTP/1.1\r\nHost: evil.example:{}\r\n{}\r\n",
                                server_->port(), cookie())),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(asked(fmt::format("GET / HTTP/1.0\r\n{}\r\n", cookie())),
              StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpServerTest, RefusesWhatIsNoQuestion) {
  serve();
  const std::string host = fmt::format("Host: 127.0.0.1:{}\r\n", server_->port());
  EXPECT_THAT(asked("POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")));
  EXPECT_THAT(asked(get("/", cookie() + "Content-Length: 1000000\r\n") + std::string(100000, 'x')),
              StartsWith("HTTP/1.1 413 "));
  for (const char* bytes : {"1048577", "99999999999"}) {  // more than the library accepts
    const std::string length = fmt::format("Content-Length: {}\r\n", bytes);
    EXPECT_THAT(asked(get("/", cookie() + length)), StartsWith("HTTP/1.1 413 "));
    EXPECT_THAT(asked("POST / HTTP/1.1\r\n" + host + length + "\r\n"), StartsWith("HTTP/1.1 413 "));
  }
  EXPECT_THAT(asked(get("/", cookie() + "Transfer-Encoding: chunked\r\n")),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(asked("\x16\x03\x01 what\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(asked("GET / HTTP/9.9\r\n" + host + "\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(asked(get("/" + std::string(2000, 'a'), cookie())), StartsWith("HTTP/1.1 414 "));
}

TEST_F(HttpServerTest, BoundsTheHeadOfARequest) {
  serve();
  const std::string padding = "X-Padding: " + std::string(7000, 'a') + "\r\n";
  EXPECT_THAT(asked_last("/api/state", cookie() + padding), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(asked(get("/", cookie() + padding + padding)), StartsWith("HTTP/1.1 431 "));
  // A long head without an end.
  PlainClient client(server_->port());
  client.say("GET /" + std::string(3 << 20, 'a'));
  EXPECT_THAT(client.hear_all(), testing::AnyOf(IsEmpty(), StartsWith("HTTP/1.1 431 ")));
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, NoPathIsThatOfAFile) {
  serve();
  for (const char* path : {"/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
                           "/page.js/..", "/metrics.jsonl", "/api/../page.js", "/api/state/"}) {
    EXPECT_THAT(asked_last(path, cookie()), StartsWith("HTTP/1.1 404 ")) << path;
  }
}

TEST_F(HttpServerTest, FollowsALiveRunAndGoesOnWhereAPageLeft) {
  serve();
  run_.play(2);
  std::string id;
  {
    PlainClient page(server_->port());
    page.say(get("/api/live", cookie()));
    const std::string first = page.hear_until("event: timeline");
    EXPECT_THAT(first, HasSubstr("Content-Type: text/event-stream\r\n"));
    EXPECT_THAT(first, HasSubstr("\"step\":[1,2]"));
    page.forget();
    run_.play(1);
    EXPECT_THAT(page.hear_until("id: 3\n"), HasSubstr("event: steps"));
  }
  run_.play(2);
  PlainClient again(server_->port());
  again.say(get("/api/live", cookie() + "Last-Event-ID: 3\r\n"));
  EXPECT_THAT(again.hear_until("event: timeline"), HasSubstr("\"step\":[4,5]"));
}

TEST_F(HttpServerTest, AFinishedRunIsShownAllTheSame) {
  run_.play(100000);
  run_.ends("ended", "all steps are done");
  serve();
  EXPECT_THAT(asked_last("/api/description", cookie()), HasSubstr("all steps are done"));
  EXPECT_THAT(asked_last("/api/history?points=100", cookie()), HasSubstr("\"step\":[1,1001,"));
  PlainClient page(server_->port());
  page.say(get("/api/live", cookie()));
  EXPECT_THAT(page.hear_until("event: timeline"),
              AllOf(HasSubstr("id: 100000\n"), HasSubstr("\"state\":\"ended\"")));
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnErrorWithItsRemedy) {
  serve();
  const auto other = HttpServer::open(run_, {.port = server_->port()});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kPeer);
  EXPECT_THAT(other.error().remedy, HasSubstr("--port"));
}

TEST_F(HttpServerTest, IsNotReachedFromOtherMachines) {
  serve();
  // Other machines could use any address of this machine except the loopback address.
  const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server_->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  EXPECT_NE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

TEST_F(HttpServerTest, EndsWhenItIsTold) {
  serve();
  PlainClient page(server_->port());
  page.say(get("/api/live", cookie()));
  page.hear_until("event: timeline");
  stop();
  server_.reset();
  page.hear_all();
  EXPECT_TRUE(page.closed());
}

}  // namespace
}  // namespace motley
