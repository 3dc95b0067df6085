#include "watch/view/line_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace motley {
namespace {

// Lines contain times, so the ends of two steps' lines differ.
constexpr std::size_t kTailBytes = 256;

}  // namespace

LineFollower::NewLines LineFollower::poll() {
  NewLines news;
  news.begins_anew = reopen();

  struct stat now {};

  if (!fd_.open() || ::fstat(fd_.get(), &now) != 0) return news;
  if (!is_unchanged(now)) {
    forget();
    news.begins_anew = true;
  }
  seen_ = now;
  if (now.st_size <= read_bytes_) return news;
  const auto unread = static_cast<std::size_t>(now.st_size - read_bytes_);
  std::string piece(std::min(unread, kPieceBytes), '\0');
  const ssize_t got = ::pread(fd_.get(), piece.data(), piece.size(), read_bytes_);
  if (got <= 0) return news;
  piece.resize(static_cast<std::size_t>(got));
  read_bytes_ += got;
  tail_ += piece.substr(piece.size() - std::min(piece.size(), kTailBytes));
  tail_.erase(0, tail_.size() - std::min(tail_.size(), kTailBytes));
  take(piece, news.lines);
  news.has_more = read_bytes_ < now.st_size;
  return news;
}

bool LineFollower::reopen() {
  struct stat there {};

  if (::stat(path_.c_str(), &there) != 0) {
    const bool had_one = fd_.open();
    fd_ = OwnedFd();
    forget();
    return had_one;
  }
  if (fd_.open() && there.st_dev == seen_.st_dev && there.st_ino == seen_.st_ino) return false;
  const bool had_one = fd_.open();
  fd_ = OwnedFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  forget();
  if (fd_.open() && ::fstat(fd_.get(), &seen_) != 0) fd_ = OwnedFd();
  return had_one;
}

bool LineFollower::is_unchanged(const struct stat& now) const {
  if (now.st_size < read_bytes_) return false;
  std::string tail(tail_.size(), '\0');
  const auto from = read_bytes_ - static_cast<std::int64_t>(tail.size());
  const ssize_t got = ::pread(fd_.get(), tail.data(), tail.size(), from);
  return got == static_cast<ssize_t>(tail.size()) && tail == tail_;
}

double LineFollower::written_at_s() const {
  constexpr double kNanoseconds = 1e-9;
  if (!fd_.open()) return 0;
  return static_cast<double>(seen_.st_mtim.tv_sec) +
         kNanoseconds * static_cast<double>(seen_.st_mtim.tv_nsec);
}

void LineFollower::forget() {
  read_bytes_ = 0;
  tail_.clear();
  begun_.clear();
  is_long_ = false;
}

void LineFollower::take(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    if (begun_.size() + end > line_bytes_max_) is_long_ = true;
    if (is_long_) {
      begun_.clear();
    } else {
      begun_.append(bytes.substr(0, end));
    }
    if (end == bytes.size()) return;
    bytes.remove_prefix(end + 1);
    if (is_long_) {
      ++left_out_;
    } else {
      lines.push_back(std::move(begun_));
    }
    begun_.clear();
    is_long_ = false;
  }
}

}  // namespace motley
