// A socket client that sends exactly the test's bytes, also such as no browser would send.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/system/owned_fd.h"

namespace motley {

class PlainClient {
 public:
  explicit PlainClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  [[nodiscard]] bool connected() const { return connected_; }

  // Returns false if the connection is closed.
  bool say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Everything received, once `part` is in it, the other end has closed, or `s` seconds have
  // passed.
  std::string hear_until(std::string_view part, double s = 20.0) {
    const Deadline deadline = Deadline::after_s(s);
    while (heard_.find(part) == std::string::npos && !closed_ && !deadline.passed()) {
      pollfd ready{fd_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 100) <= 0) continue;
      char piece[65536];
      const ssize_t got = ::recv(fd_.get(), piece, sizeof(piece), 0);
      closed_ = got <= 0;
      if (got > 0) heard_.append(piece, static_cast<std::size_t>(got));
    }
    return heard_;
  }

  std::string hear_all(double s = 20.0) { return hear_until("no such text", s); }

  void forget() { heard_.clear(); }

  [[nodiscard]] bool closed() const { return closed_; }

 private:
  OwnedFd fd_;
  bool connected_ = false;
  bool closed_ = false;
  std::string heard_;
};

}  // namespace motley
