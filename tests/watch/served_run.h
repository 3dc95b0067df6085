// An emulated run and the server of its page, as strangers and browsers use it, over sockets.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/system/owned_fd.h"
#include "tests/watch/plain_client.h"
#include "tests/watch/played_run.h"
#include "watch/http/http_server.h"

namespace motley {

class HttpServerTest : public testing::Test {
 protected:
  ~HttpServerTest() override { stop(); }

  void serve(HttpServerOptions options = {}) {
    options.look_every_s = 0.02;
    auto opened = HttpServer::open(run_, options);
    ASSERT_TRUE(opened.ok()) << describe(opened.error());
    server_ = std::move(opened).value();
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    stop_read_ = OwnedFd(ends[0]);
    stop_write_ = OwnedFd(ends[1]);
    thread_ = std::jthread([this] { server_->serve_until({stop_read_.get()}); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(::write(stop_write_.get(), "x", 1), 1);
    thread_.join();
  }

  [[nodiscard]] std::string get(const std::string& target, const std::string& more = {}) const {
    return fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n", target, server_->port(),
                       more);
  }

  [[nodiscard]] std::string cookie() const {
    return fmt::format("Cookie: motley_{}={}\r\n", server_->port(), server_->token());
  }

  // The response to one request on a new connection.
  [[nodiscard]] std::string asked(const std::string& request) const {
    PlainClient client(server_->port());
    EXPECT_TRUE(client.say(request));
    return client.hear_all(5.0);
  }

  [[nodiscard]] std::string asked_last(const std::string& target,
                                       const std::string& more = {}) const {
    return asked(get(target, more + "Connection: close\r\n"));
  }

  PlayedRun run_{100000};
  std::unique_ptr<HttpServer> server_;

 private:
  OwnedFd stop_read_;
  OwnedFd stop_write_;
  std::jthread thread_;
};

}  // namespace motley
