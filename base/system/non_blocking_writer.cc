#include "base/system/non_blocking_writer.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/system/blocked_signals.h"

namespace motley {

struct NonBlockingWriter::State {
  int fd = -1;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;      // to be written; empty = nothing
  bool started = false;  // the thread
  bool ends = false;
};

NonBlockingWriter::NonBlockingWriter(int fd) : state_(std::make_shared<State>()) {
  state_->fd = fd;
}

NonBlockingWriter::~NonBlockingWriter() {
  std::unique_lock lock(state_->mutex);
  state_->ends = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, std::chrono::duration<double>(kLastPatience_s),
                           [this] { return state_->text.empty(); });
}

bool NonBlockingWriter::write(std::string_view text) {
  std::unique_lock lock(state_->mutex);
  if (!state_->text.empty()) return false;
  if (text.empty()) return true;
  state_->text = text;
  if (!state_->started) state_->started = start();
  if (!state_->started) {
    state_->text.clear();
    return false;
  }
  state_->changed.notify_all();
  state_->changed.wait_for(lock, std::chrono::duration<double>(kPatience_s),
                           [this] { return state_->text.empty(); });
  return true;
}

bool NonBlockingWriter::start() {
  const BlockedSignals no_signals;
  try {
    std::thread([state = state_] { write_texts(state); }).detach();
  } catch (const std::system_error&) {
    return false;  // the limit of threads; what matters more will say so
  }
  return true;
}

void NonBlockingWriter::write_texts(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return !state->text.empty() || state->ends; });
    if (state->text.empty()) return;
    const std::string text = state->text;
    lock.unlock();
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t bytes = ::write(state->fd, text.data() + done, text.size() - done);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) break;  // nobody is there any more
      done += static_cast<std::size_t>(bytes);
    }
    lock.lock();
    state->text.clear();
    state->changed.notify_all();
  }
}

}  // namespace motley
