#include "protocol/worker_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <utility>

#include "base/check.h"
#include "protocol/lease_status.h"

namespace motley {
namespace {

// One poll for messages of the launcher; a lease is rounded up to whole polls.
constexpr double kListen_s = 0.25;
constexpr std::size_t kLineBytesMax = 64U << 20;  // a job with a large plan is far below

[[noreturn]] void leave(int status) {
  std::_Exit(status);
}

}  // namespace

WorkerChannel::WorkerChannel(SavingTime saving_time) : saving_time_(saving_time) {
  std::signal(SIGPIPE, SIG_IGN);
  output_fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  MOTLEY_CHECK(output_fd_ >= 0, "cannot duplicate standard output: errno {}", errno);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  // Ends an unterminated line that a shell has printed, so that it does not precede the first
  // event.
  [[maybe_unused]] const ssize_t begun = ::write(output_fd_, "\n", 1);
  MOTLEY_CHECK(::pipe2(wake_fds_, O_CLOEXEC) == 0, "cannot make a pipe: errno {}", errno);
  reader_ = std::jthread([this](const std::stop_token& stop) { read_lines(stop); });
}

WorkerChannel::~WorkerChannel() {
  heartbeats_.request_stop();
  heartbeat_wake_.notify_all();
  reader_.request_stop();
  [[maybe_unused]] const ssize_t woken = ::write(wake_fds_[1], "", 1);
  if (heartbeats_.joinable()) heartbeats_.join();
  reader_.join();
  ::close(wake_fds_[0]);
  ::close(wake_fds_[1]);
  ::close(output_fd_);
}

void WorkerChannel::read_lines(const std::stop_token& stop) {
  std::string partial;
  double silence_s = 0;  // listening time without a message
  bool is_open = true;
  while (!stop.stop_requested()) {
    pollfd waits[2] = {{is_open ? STDIN_FILENO : -1, POLLIN, 0}, {wake_fds_[0], POLLIN, 0}};
    const double begun_s = now_s();
    const int ready = ::poll(waits, 2, static_cast<int>(kListen_s * 1e3));
    if (ready < 0 && errno != EINTR) leave(static_cast<int>(ErrorCode::kInternal));
    if (stop.stop_requested()) return;
    // A poll that took longer means that this process was stopped, not that the launcher was
    // silent.
    const double elapsed_s = std::min(now_s() - begun_s, 2 * kListen_s);
    if (is_launcher_lost()) check_saving(elapsed_s);
    if (ready > 0 && waits[0].revents != 0) {
      silence_s = 0;
      is_open = read_block(partial);
      if (!is_open) lose_launcher(static_cast<int>(ErrorCode::kTerminated), "the launcher is gone");
      continue;
    }
    silence_s += elapsed_s;
    const double lease_s = lease_s_.load();
    if (ready == 0 && lease_s > 0 && silence_s >= lease_s) {
      lose_launcher(kLeaseExpiredStatus,
                    fmt::format("lease expired: no message from the launcher for {:g} s; it was "
                                "stopped, or its machine sleeps, is down or lost its network",
                                lease_s));
    }
  }
}

bool WorkerChannel::read_block(std::string& partial) {
  char block[1 << 16];
  const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  partial.append(block, static_cast<std::size_t>(got));
  if (partial.size() > kLineBytesMax) leave(static_cast<int>(ErrorCode::kInternal));
  for (std::size_t end; (end = partial.find('\n')) != std::string::npos;
       partial.erase(0, end + 1)) {
    take_line(std::string_view(partial).substr(0, end));
  }
  return true;
}

void WorkerChannel::take_line(std::string_view line) {
  auto message = parse_json(line, "the launcher's message");
  if (!message.ok()) {
    std::fputs(describe(message.error()).c_str(), stderr);
    leave(static_cast<int>(ErrorCode::kInternal));
  }
  if (message->contains("stop")) leave(static_cast<int>(ErrorCode::kTerminated));
  if (message->contains("finish")) return is_to_finish_.store(true);
  if (message->contains("lease")) return renew_lease((*message)["lease"]);
  const std::lock_guard lock(input_mutex_);
  input_.push_back(std::move(*message));
  input_changed_.notify_one();
}

void WorkerChannel::renew_lease(const Json& lease) {
  if (!lease.is_number_unsigned()) return;
  const auto count = lease.get<std::uint64_t>();
  if (std::exchange(group_count_, count) != count) group_progress_clock_.touch();
}

void WorkerChannel::start_lease(double lease_s,
                                std::function<void(const std::string& words)> on_lost) {
  on_lost_ = std::move(on_lost);
  lease_s_.store(lease_s);
}

void WorkerChannel::outlive_launcher(std::function<std::uint64_t()> progress) {
  progress_ = std::move(progress);
  outlives_.store(true);
}

// Nothing here may block: the streams may lead to an unreachable machine, and another thread may be
// blocked in one of them.
void WorkerChannel::lose_launcher(int status, const std::string& words) {
  if (is_launcher_lost()) return;
  const bool outlives = outlives_.load();
  if (!outlives && status != kLeaseExpiredStatus) leave(status);  // at once, as after a stop
  const std::string line =
      words + (outlives ? "; this worker saves its step and exits\n" : "; this worker exits\n");
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  std::promise<void> said;
  const auto is_said = said.get_future();
  std::thread([on_lost = lease_s_.load() > 0 ? on_lost_ : nullptr, line,
               said = std::move(said)]() mutable {
    if (on_lost) on_lost(line.substr(0, line.size() - 1));
    said.set_value();
  }).detach();
  if (!outlives) {
    (void)is_said.wait_for(std::chrono::duration<double>(kLastWords_s));
    leave(status);
  }
  saving_count_ = progress_();
  lost_status_.store(status);
  is_to_finish_.store(true);
}

void WorkerChannel::check_saving(double elapsed_s) {
  saving_s_ += elapsed_s;
  saving_stall_s_ += elapsed_s;
  if (const std::uint64_t count = progress_(); std::exchange(saving_count_, count) != count) {
    saving_stall_s_ = 0;
  }
  const bool is_over = saving_stall_s_ >= saving_time_.stall_s || saving_s_ >= saving_time_.total_s;
  if (is_over) leave(lost_status_.load());
}

Result<Json> WorkerChannel::receive(Deadline deadline, const std::string& what) {
  std::unique_lock lock(input_mutex_);
  while (!input_changed_.wait_until(lock, deadline.time(), [&] { return !input_.empty(); })) {
    if (!deadline.passed()) continue;  // another worker of the group has made progress
    return Error{ErrorCode::kPeer, fmt::format("the launcher did not send {} in time", what), "",
                 "restart it; see the launcher's output for its last activity"};
  }
  Json message = std::move(input_.front());
  input_.pop_front();
  return message;
}

// Writes only what the stream accepts at once: a launcher that does not read must not keep this
// thread when it is lost.
void WorkerChannel::send(const Json& event) {
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(output_mutex_);
  for (std::size_t done = 0; done < line.size() && !is_launcher_lost();) {
    pollfd output{output_fd_, POLLOUT, 0};
    if (::poll(&output, 1, static_cast<int>(kListen_s * 1e3)) <= 0) continue;
    const std::size_t part = std::min<std::size_t>(line.size() - done, PIPE_BUF);
    const ssize_t written = ::write(output_fd_, line.data() + done, part);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {  // the launcher is gone; the reader finds the end of its messages
      if (outlives_.load()) return;
      leave(static_cast<int>(ErrorCode::kTerminated));
    }
    done += static_cast<std::size_t>(written);
  }
}

void WorkerChannel::start_heartbeats(double interval_s, std::function<Json()> make_heartbeat) {
  MOTLEY_CHECK(!heartbeats_.joinable(), "beats are already running");
  heartbeats_ = std::jthread(
      [this, interval_s, make_heartbeat = std::move(make_heartbeat)](const std::stop_token& stop) {
        std::unique_lock lock(heartbeat_mutex_);
        while (!stop.stop_requested()) {
          send(make_heartbeat());
          heartbeat_wake_.wait_for(lock, stop, std::chrono::duration<double>(interval_s),
                                   [] { return false; });
        }
      });
}

}  // namespace motley
