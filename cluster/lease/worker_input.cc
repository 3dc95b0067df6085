#include "cluster/lease/worker_input.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace motley {

void WorkerInput::open(OwnedFd fd) {
  const std::lock_guard lock(mutex_);
  fd_ = std::move(fd);
}

void WorkerInput::close() {
  const std::lock_guard lock(mutex_);
  queued_.clear();
  fd_.reset();
}

void WorkerInput::send(const Json& message) {
  // Messages may contain text from a worker; bytes that are not UTF-8 must not throw.
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  const std::lock_guard lock(mutex_);
  if (!fd_.open()) return;
  queued_ += line;
  flush_locked();
}

void WorkerInput::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void WorkerInput::renew(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!fd_.open() || !queued_.empty()) return;
  // A pipe writes such a short line whole or not at all.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), line.data(), line.size());
}

int WorkerInput::waits_for() const {
  const std::lock_guard lock(mutex_);
  return queued_.empty() ? -1 : fd_.get();
}

void WorkerInput::flush_locked() {
  while (!queued_.empty()) {
    const ssize_t bytes = ::write(fd_.get(), queued_.data(), queued_.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes < 0) {  // the worker has ended; its exit status has the reason
      queued_.clear();
      fd_.reset();
      return;
    }
    queued_.erase(0, static_cast<std::size_t>(bytes));
  }
}

}  // namespace motley
