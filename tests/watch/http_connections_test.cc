// Many connections, slow ones, and ones without a token: none keeps the owner from the page.
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/watch/served_run.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

class HttpConnectionsTest : public HttpServerTest {};

TEST_F(HttpConnectionsTest, ASlowRequestIsGivenUp) {
  serve({.request_s = 0.2});
  PlainClient client(server_->port());
  const std::string request = get("/", cookie());
  // A byte now and then does not extend the timeout, which is that of the whole head.
  for (std::size_t at = 0; at < request.size() && client.say(request.substr(at, 1)); ++at) {
    client.hear_until("x", 0.05);
    if (client.closed()) break;
  }
  EXPECT_TRUE(client.closed());
  EXPECT_THAT(client.hear_all(), IsEmpty());
  EXPECT_THAT(asked_last("/api/state", cookie()), HasSubstr("200 OK"));
}

TEST_F(HttpConnectionsTest, StrangersDoNotLockTheOwnerOut) {
  serve({.unauthenticated_max = 16});
  PlainClient page(server_->port());
  page.say(get("/api/live", cookie()));
  page.hear_until("event: timeline");
  const std::size_t descriptors = open_descriptors();
  std::vector<std::unique_ptr<PlainClient>> held;
  for (int i = 0; i < 64; ++i) held.push_back(std::make_unique<PlainClient>(server_->port()));
  EXPECT_THAT(asked_last("/", cookie()), HasSubstr("<title>Motley</title>"));
  for (int i = 0; i < 10000; ++i) PlainClient(server_->port()).say("GET / HT");
  EXPECT_THAT(asked_last("/", cookie()), HasSubstr("<title>Motley</title>"));
  // The oldest of them was closed long ago.
  EXPECT_THAT(held.front()->hear_all(), IsEmpty());
  EXPECT_TRUE(held.front()->closed());
  // The earlier connection is not affected, and the closed ones leave nothing behind.
  page.forget();
  run_.play(1);
  EXPECT_THAT(page.hear_until("event: state"), HasSubstr("\"step\":[1]"));
  held.clear();
  const Deadline deadline = Deadline::after_s(20);
  while (open_descriptors() > descriptors && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(open_descriptors(), descriptors);
}

TEST_F(HttpConnectionsTest, ManyPagesAreToldThatTheyAreTooMany) {
  serve({.connections_max = 1});
  auto page = std::make_unique<PlainClient>(server_->port());
  page->say(get("/api/live", cookie()));
  page->hear_until("event: timeline");
  EXPECT_THAT(asked_last("/api/state", cookie()),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("close some of them")));
  page.reset();
  std::string answer;
  const Deadline deadline = Deadline::after_s(20);
  while (answer.find("200 OK") == std::string::npos && !deadline.passed()) {
    answer = asked_last("/api/state", cookie());
  }
  EXPECT_THAT(answer, HasSubstr("200 OK"));
}

// A run whose reading never ends: requests are answered between two pieces.
TEST_F(HttpConnectionsTest, AnswersWhileItReads) {
  run_.is_long();
  serve();
  EXPECT_THAT(asked_last("/api/state", cookie()), HasSubstr("200 OK"));
  const int looks = run_.looks();
  const Deadline deadline = Deadline::after_s(20);
  while (run_.looks() < looks + 1000 && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(run_.looks(), looks + 1000);  // although no page is open
  EXPECT_THAT(asked_last("/", cookie()), HasSubstr("<title>Motley</title>"));
}

TEST_F(HttpConnectionsTest, APageThatDoesNotReadIsGivenUp) {
  serve({.heartbeat_s = 0.01, .write_s = 0.3});
  PlainClient page(server_->port());
  page.say(get("/api/live", cookie()));
  run_.play(100000);
  for (int i = 0; i < 400; ++i) {
    run_.happens("warning", std::string(20000, 'x'));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  page.hear_all(30.0);
  EXPECT_TRUE(page.closed());
  EXPECT_THAT(asked_last("/api/state", cookie()), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace motley
