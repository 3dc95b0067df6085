#include "protocol/worker_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

constexpr std::size_t kLineBytesMax = 64U << 20;  // a job with a large plan is far below

[[noreturn]] void leave(ErrorCode code) {
  std::_Exit(static_cast<int>(code));
}

}  // namespace

WorkerChannel::WorkerChannel() {
  std::signal(SIGPIPE, SIG_IGN);
  output_fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  MOTLEY_CHECK(output_fd_ >= 0, "cannot duplicate standard output: errno {}", errno);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  MOTLEY_CHECK(::pipe2(wake_fds_, O_CLOEXEC) == 0, "cannot make a pipe: errno {}", errno);
  reader_ = std::jthread([this](const std::stop_token& stop) { read_lines(stop); });
}

WorkerChannel::~WorkerChannel() {
  beats_.request_stop();
  beat_wake_.notify_all();
  reader_.request_stop();
  [[maybe_unused]] const ssize_t woken = ::write(wake_fds_[1], "", 1);
  if (beats_.joinable()) beats_.join();
  reader_.join();
  ::close(wake_fds_[0]);
  ::close(wake_fds_[1]);
  ::close(output_fd_);
}

void WorkerChannel::read_lines(const std::stop_token& stop) {
  std::string partial;
  char block[1 << 16];
  while (!stop.stop_requested()) {
    pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {wake_fds_[0], POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) leave(ErrorCode::kInternal);
    if (stop.stop_requested() || waits[0].revents == 0) continue;
    const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) leave(ErrorCode::kTerminated);  // the launcher is gone
    partial.append(block, static_cast<std::size_t>(got));
    if (partial.size() > kLineBytesMax) leave(ErrorCode::kInternal);
    for (std::size_t end; (end = partial.find('\n')) != std::string::npos;
         partial.erase(0, end + 1)) {
      auto message = parse_json(std::string_view(partial).substr(0, end), "the launcher's message");
      if (!message.ok()) {
        std::fputs(describe(message.error()).c_str(), stderr);
        leave(ErrorCode::kInternal);
      }
      if (message->contains("stop")) leave(ErrorCode::kTerminated);
      const std::lock_guard lock(input_mutex_);
      input_.push_back(std::move(*message));
      input_changed_.notify_one();
    }
  }
}

Result<Json> WorkerChannel::receive(Deadline deadline, const std::string& what) {
  std::unique_lock lock(input_mutex_);
  if (!input_changed_.wait_until(lock, deadline.time(), [&] { return !input_.empty(); })) {
    return Error{ErrorCode::kPeer, fmt::format("the launcher did not send {} in time", what), "",
                 "start it again; the launcher's output says what it was doing"};
  }
  Json message = std::move(input_.front());
  input_.pop_front();
  return message;
}

void WorkerChannel::send(const Json& event) {
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(output_mutex_);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(output_fd_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) leave(ErrorCode::kTerminated);  // the launcher is gone
    done += static_cast<std::size_t>(written);
  }
}

void WorkerChannel::start_beats(double interval_s, std::function<Json()> make_beat) {
  MOTLEY_CHECK(!beats_.joinable(), "beats are already running");
  beats_ = std::jthread(
      [this, interval_s, make_beat = std::move(make_beat)](const std::stop_token& stop) {
        std::unique_lock lock(beat_mutex_);
        while (!stop.stop_requested()) {
          send(make_beat());
          beat_wake_.wait_for(lock, stop, std::chrono::duration<double>(interval_s),
                              [] { return false; });
        }
      });
}

}  // namespace motley
