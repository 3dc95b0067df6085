#include "cluster/launch/worker_poll.h"

#include <poll.h>

#include <algorithm>
#include <cmath>

namespace motley {

PollOutcome poll_workers(const std::vector<std::unique_ptr<Worker>>& workers,
                         const StopSignals& signals,
                         const Deadline& deadline) {
  std::vector<pollfd> fds;
  std::vector<ReadyStream> watches;  // [index in fds]
  const auto watch = [&](int fd, short events, Stream stream, Worker* worker) {
    fds.push_back({.fd = fd, .events = events, .revents = 0});
    watches.push_back({stream, worker});
  };
  watch(signals.fd(), POLLIN, Stream::kSignal, nullptr);
  for (const auto& worker : workers) {
    if (!worker->running()) continue;
    Process& process = worker->process();
    if (const int fd = worker->input().waits_for(); fd >= 0) {
      watch(fd, POLLOUT, Stream::kInput, worker.get());
    }
    if (worker->output_open()) watch(process.output().get(), POLLIN, Stream::kOutput, worker.get());
    if (worker->errors_open()) watch(process.errors().get(), POLLIN, Stream::kErrors, worker.get());
    watch(process.exit_fd(), POLLIN, Stream::kExit, worker.get());
  }
  const double timeout_ms = std::ceil(deadline.left_s() * 1e3);
  const int count = ::poll(fds.data(), fds.size(), static_cast<int>(std::min(timeout_ms, 1e9)));
  PollOutcome outcome;
  outcome.timed_out = count == 0;
  if (count <= 0) return outcome;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents != 0) outcome.ready.push_back(watches[i]);
  }
  return outcome;
}

}  // namespace motley
