// Stranger: a bare socket connected to the acceptor of a TCP transport, for bytes that no rank
// would send.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace motley {

class Stranger {
 public:
  // Connects to the address of a transport ("tls:127.0.0.1:4711"), from an address of this
  // machine.
  explicit Stranger(const std::string& address, const std::string& from = "127.0.0.1")
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in source = endpoint(from, 0);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&source), sizeof source), 0);
    constexpr timeval kStallTimeout{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kStallTimeout, sizeof kStallTimeout);
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    const sockaddr_in target = endpoint("127.0.0.1", port);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0;
  }

  // A socket that is not connected.
  static Stranger unconnected() {
    return Stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), false);
  }

  // Accepts the next connection of a listening socket.
  static Stranger accepted_by(const Stranger& listening) {
    return Stranger(::accept4(listening.fd_, nullptr, nullptr, SOCK_CLOEXEC), true);
  }

  ~Stranger() {
    if (fd_ >= 0) ::close(fd_);
  }

  Stranger(Stranger&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}

  Stranger& operator=(Stranger&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] bool connected() const { return connected_; }

  void say(std::span<const std::byte> bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Sends as many of the bytes as the other end accepts.
  void try_to_say(std::span<const std::byte> bytes) const {
    (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // Receives `count` bytes, or fewer if the other end closes before.
  [[nodiscard]] std::vector<std::byte> hear(std::size_t count) const {
    std::vector<std::byte> bytes(count);
    std::size_t came = 0;
    while (came < count) {
      const ssize_t more = ::recv(fd_, bytes.data() + came, count - came, 0);
      if (more <= 0) break;
      came += static_cast<std::size_t>(more);
    }
    bytes.resize(came);
    return bytes;
  }

  // Whether the other end closes the connection after at most an alert.
  [[nodiscard]] bool is_sent_away() const {
    constexpr std::size_t kAlertMax = 64;
    std::array<std::byte, kAlertMax> alert{};
    ssize_t count = 0;
    for (std::size_t heard = 0; heard < kAlertMax; heard += static_cast<std::size_t>(count)) {
      count = ::recv(fd_, alert.data(), alert.size(), 0);
      if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
      if (count < 0) return false;
    }
    return false;
  }

 private:
  Stranger(int fd, bool connected) : fd_(fd), connected_(connected) {}

  static sockaddr_in endpoint(const std::string& host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
    return address;
  }

  int fd_;
  bool connected_ = false;
};

}  // namespace motley
