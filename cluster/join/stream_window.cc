#include "cluster/join/stream_window.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "cluster/join/join_messages.h"

namespace motley {
namespace {

constexpr std::size_t kReadBytes = std::size_t{32} << 10;
constexpr std::uint64_t kGrantBytes = kStreamWindowBytes / 4;

void make_nonblocking(const OwnedFd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0) ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
}

}  // namespace

StreamSource::StreamSource(OwnedFd fd, StreamRoute route) : fd_(std::move(fd)), route_(route) {
  make_nonblocking(fd_);
}

void StreamSource::watch(PollSet& polled) {
  if (fd_.open() && granted_ > 0) polled.watch(fd_.get(), POLLIN, [this] { read(); });
}

void StreamSource::read() {
  std::array<char, kReadBytes> buffer;
  const auto bytes_max = static_cast<std::size_t>(std::min<std::uint64_t>(granted_, kReadBytes));
  const ssize_t bytes = ::read(fd_.get(), buffer.data(), bytes_max);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const auto count = static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
  route_.link->send(route_.kind, route_.channel, {buffer.data(), count});
  granted_ -= count;
  if (count == 0) fd_.reset();
}

StreamSink::StreamSink(OwnedFd fd, StreamRoute route) : fd_(std::move(fd)), route_(route) {
  make_nonblocking(fd_);
}

void StreamSink::watch(PollSet& polled) {
  if (fd_.open() && !bytes_.empty()) polled.watch(fd_.get(), POLLOUT, [this] { write(); });
}

bool StreamSink::take(std::string_view bytes) {
  if (bytes.empty()) return end(), true;
  if (bytes_.size() + bytes.size() > kStreamWindowBytes) return false;
  bytes_ += bytes;
  write();
  return true;
}

void StreamSink::end() {
  ends_ = true;
  if (bytes_.empty()) fd_.reset();
}

void StreamSink::write() {
  const std::size_t before = bytes_.size();
  while (!bytes_.empty() && fd_.open()) {
    const ssize_t count = ::write(fd_.get(), bytes_.data(), bytes_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0)
      fd_.reset();  // its reader is gone
    else
      bytes_.erase(0, static_cast<std::size_t>(count));
  }
  if (!fd_.open()) bytes_.clear();
  passed_ += before - bytes_.size();
  if (passed_ >= kGrantBytes) {
    const StreamCredit credit{route_.name, std::exchange(passed_, 0)};
    route_.link->send(JoinKind::kCredit, route_.channel, join_text(credit));
  }
  if (ends_ && bytes_.empty()) fd_.reset();
}

}  // namespace motley
