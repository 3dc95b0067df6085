// OwnedFd: a file descriptor with one owner, closed with it.
#pragma once

#include <unistd.h>

#include <utility>

namespace motley {

class OwnedFd {
 public:
  OwnedFd() = default;

  explicit OwnedFd(int fd) : fd_(fd) {}

  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  ~OwnedFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }

  [[nodiscard]] bool open() const { return fd_ >= 0; }

  // The caller must close the descriptor.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace motley
