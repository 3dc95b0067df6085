#include "worker/train/end_request.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/result.h"

namespace motley {
namespace {

constexpr char kSignal = 's';
constexpr char kEnd = 'e';

// The handler has no other way to find its pipe.
std::atomic<int> request_fd{-1};

struct sigaction earlier_action {};

void write_byte(char byte) {
  const int fd = request_fd.load();
  // A full pipe holds enough requests.
  [[maybe_unused]] const ssize_t written = fd < 0 ? 0 : ::write(fd, &byte, 1);
}

void on_signal(int /*signal*/) {
  const int before = errno;
  write_byte(kSignal);
  errno = before;
}

}  // namespace

EndRequest::EndRequest(std::function<void()> on_request, double grace_s, double once_s)
    : on_request_(std::move(on_request)) {
  MOTLEY_CHECK(request_fd.load() < 0, "a second EndRequest");
  int ends[2] = {-1, -1};
  MOTLEY_CHECK(::pipe(ends) == 0, "pipe failed, errno {}", errno);
  for (const int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  requests_ = OwnedFd(ends[0]);
  request_fd.store(ends[1]);
  waiter_ = std::jthread([this, grace_s, once_s] { wait(grace_s, once_s); });

  struct sigaction action {};

  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  MOTLEY_CHECK(::sigaction(SIGTERM, &action, &earlier_action) == 0, "errno {}", errno);
}

EndRequest::~EndRequest() {
  ::sigaction(SIGTERM, &earlier_action, nullptr);
  write_byte(kEnd);
  waiter_.join();
  ::close(request_fd.exchange(-1));
}

void EndRequest::wait(double grace_s, double once_s) {
  int requests = 0;
  double end_at_s = 0;
  double repeats_from_s = 0;
  for (;;) {
    const double left_s = requests == 0 ? 3600 : end_at_s - now_s();
    if (requests > 0 && left_s <= 0) ::_exit(static_cast<int>(ErrorCode::kTerminated));
    pollfd readable{.fd = requests_.get(), .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, static_cast<int>(std::min(left_s, 3600.0) * 1000) + 1);
    char byte = 0;
    while (::read(requests_.get(), &byte, 1) == 1) {
      if (byte == kEnd) return;
      if (requests > 0 && now_s() < repeats_from_s) continue;
      if (++requests > 1) ::_exit(static_cast<int>(ErrorCode::kTerminated));
      end_at_s = now_s() + grace_s;
      repeats_from_s = now_s() + once_s;
      on_request_();
    }
  }
}

}  // namespace motley
