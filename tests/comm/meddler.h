// Meddler: a man in the middle between a connecting rank and the acceptor of a TCP transport.
// Forwards and records the bytes of both, and flips one bit, once.
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/stranger.h"

namespace motley {

class Meddler {
 public:
  static constexpr std::size_t kNever = ~std::size_t{0};

  // Flips the lowest bit of byte `flipped_at` of all bytes from connecting ranks together.
  explicit Meddler(std::string acceptor, std::size_t flipped_at = kNever)
      : acceptor_(std::move(acceptor)), flipped_at_(flipped_at) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening_.fd(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
    EXPECT_EQ(::listen(listening_.fd(), 4), 0);
    socklen_t bytes = sizeof here;
    ::getsockname(listening_.fd(), reinterpret_cast<sockaddr*>(&here), &bytes);
    const std::string kind = acceptor_.substr(0, acceptor_.find(':'));
    address_ = kind + ":127.0.0.1:" + std::to_string(ntohs(here.sin_port));
    thread_ = std::jthread([this] { run(); });
  }

  ~Meddler() { stopping_ = true; }

  Meddler(const Meddler&) = delete;
  Meddler& operator=(const Meddler&) = delete;

  // In the format of the acceptor's address.
  [[nodiscard]] const std::string& address() const { return address_; }

  // Whether these bytes were forwarded, in either direction.
  [[nodiscard]] bool saw(std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        heard_, [&](const auto& said) { return !std::ranges::search(said, bytes).empty(); });
  }

 private:
  static constexpr int kLook_ms = 20;

  void run() {
    while (!stopping_) {
      pollfd waiting{listening_.fd(), POLLIN, 0};
      if (::poll(&waiting, 1, kLook_ms) <= 0) continue;
      const Stranger connecting = Stranger::accepted_by(listening_);
      const Stranger acceptor(acceptor_);
      while (!stopping_ && pass_on(connecting, acceptor)) {
      }
    }
  }

  // Returns false once one end has closed.
  bool pass_on(const Stranger& connecting, const Stranger& acceptor) {
    std::array<pollfd, 2> ends = {pollfd{connecting.fd(), POLLIN, 0},
                                  pollfd{acceptor.fd(), POLLIN, 0}};
    if (::poll(ends.data(), ends.size(), kLook_ms) <= 0) return true;
    std::array<std::byte, 4096> bytes;
    for (const pollfd& end : ends) {
      if (end.revents == 0) continue;
      const ssize_t count = ::recv(end.fd, bytes.data(), bytes.size(), 0);
      if (count <= 0) return false;
      const auto said = std::span(bytes).first(static_cast<std::size_t>(count));
      const bool is_connecting = end.fd == connecting.fd();
      if (is_connecting) meddle(said);
      {
        const std::lock_guard lock(mutex_);
        std::ranges::copy(said, std::back_inserter(heard_[is_connecting ? 0 : 1]));
      }
      (is_connecting ? acceptor : connecting).try_to_say(said);
    }
    return true;
  }

  void meddle(std::span<std::byte> said) {
    if (flipped_at_ >= passed_ && flipped_at_ - passed_ < said.size()) {
      said[flipped_at_ - passed_] ^= std::byte{1};
    }
    passed_ += said.size();
  }

  const std::string acceptor_;
  const std::size_t flipped_at_;
  const Stranger listening_ = Stranger::unconnected();
  std::string address_;
  std::size_t passed_ = 0;  // used only by thread_
  std::mutex mutex_;
  std::array<std::vector<std::byte>, 2>
      heard_;  // from the connecting ranks, from the acceptor; guarded by mutex_
  std::atomic<bool> stopping_ = false;
  std::jthread thread_;
};

}  // namespace motley
