#include "cluster/launch/worker_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/process/process.h"
#include "base/process/stop_signals.h"
#include "base/system/files.h"
#include "cluster/launch/group_events.h"
#include "cluster/launch/group_waits.h"
#include "cluster/launch/starter.h"
#include "cluster/launch/stop_policy.h"
#include "cluster/launch/worker.h"
#include "cluster/lease/lease_renewer.h"

namespace motley {
namespace {

// What a group waits for: its workers' streams and exits, or a signal to this process.
enum class Stream { kInput, kOutput, kErrors, kExit, kSignal };

struct ReadyStream {
  Stream stream;
  Worker* worker;  // nullptr for the signal
};

struct PollOutcome {
  std::vector<ReadyStream> ready;
  // Otherwise, if nothing is ready, an unrelated signal interrupted the wait.
  bool timed_out = false;
};

// Waits until `deadline` at most. A worker's input is ready when it accepts more of its queued
// bytes, the other streams when they are readable.
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

// Bound on the reads from a process that has ended: more than any pipe holds.
constexpr int kDrainReads = 64;

}  // namespace

struct WorkerGroup::Impl {
  Impl(std::vector<WorkerSpec> specs, WorkerGroupOptions group_options, const Log& group_log)
      : options(std::move(group_options)), log(group_log) {
    for (WorkerSpec& spec : specs) {
      const std::string prefix = spec.name + ": ";
      workers.push_back(std::make_unique<Worker>(
          std::move(spec), [this, prefix](const std::string& line) { say(prefix + line); }));
    }
  }

  Result<void> run(const EventHandler& handler);

  // The parts of run().
  Result<void> supervise();
  Error with_own_absence(Error error);
  void end_all();

  // Waits until `deadline` at most for the next streams, exits and signals, and handles them.
  Result<void> wait_and_handle(const Deadline& deadline);
  Result<void> handle_output(Worker& worker);
  Result<void> handle_exit(Worker& worker);
  Result<void> handle_signal();

  void finish() const {
    for (const auto& worker : workers) worker->input().send({{"finish", true}});
  }

  template <class Predicate>
  bool all(Predicate predicate) const {
    return std::all_of(workers.begin(), workers.end(),
                       [&](const auto& worker) { return predicate(*worker); });
  }

  bool none_runs() const {
    return all([](const Worker& worker) { return !worker.running(); });
  }

  bool all_ended() const {
    return all([](const Worker& worker) { return !worker.running() && !worker.to_start; });
  }

  void say(const std::string& line) const {
    if (options.before_log) options.before_log();
    log.info(line);
  }

  void warn(const std::string& line) const {
    if (options.before_log) options.before_log();
    log.warn(line);
  }

  WorkerGroupOptions options;
  const Log& log;
  std::vector<std::unique_ptr<Worker>> workers;  // in the order of the specs
  std::optional<StopSignals> signals;
  Starter starter{workers, options, [this](const auto& line) { say(line); }};
  GroupWaits waits{workers, options, starter, [this](const auto& line) { warn(line); }};
  GroupFailures failures{workers};
  bool ending = false;  // events no longer count
  StopPolicy stop_policy;
  bool quiet = false;                       // the last poll found nothing to handle
  std::optional<LeaseRenewer> renewer;      // destroyed before the workers
  std::optional<GroupEvents> group_events;  // set by run()
};

Result<void> WorkerGroup::Impl::run(const EventHandler& handler) {
  MOTLEY_CHECK(!group_events, "a worker group runs once");
  group_events.emplace(GroupEvents::Group{workers, options, starter, waits, failures, renewer,
                                          [this](const auto& line) { warn(line); }},
                       handler);
  signals.emplace();
  allow_many_files();
  if (!options.log_folder.empty()) MOTLEY_TRY(make_folders(options.log_folder));
  renewer.emplace(options.renewal_s, options.patience_s / 2, [this](const std::string& line) {
    for (const auto& worker : workers) worker->input().renew(line);
  });
  Result<void> outcome = supervise();
  if (!outcome.ok()) outcome = with_own_absence(std::move(outcome).error());
  renewer.reset();
  end_all();
  signals.reset();
  if (!outcome.ok() && options.on_fault) options.on_fault(failures.fault());
  return outcome;
}

// If the launcher itself was absent, it is the cause, not the workers.
Error WorkerGroup::Impl::with_own_absence(Error error) {
  const double absent_s = renewer->absence_s();
  if (absent_s == 0 || error.code != ErrorCode::kPeer) return error;
  return failures.blame({own_absence(absent_s, error),
                         {.machines = {}, .cannot_connect = false, .own_absence = true}});
}

Result<void> WorkerGroup::Impl::supervise() {
  while (!all_ended() || !failures.empty()) {
    if (!failures.empty()) {
      if (failures.are_settled() || none_runs()) return failures.blame(failures.first());
    } else {
      MOTLEY_TRY(starter.start_due());
    }
    const Deadline deadline = failures.empty() ? waits.next() : failures.settle_deadline();
    MOTLEY_TRY(wait_and_handle(deadline));
    if (!failures.empty() || !deadline.passed()) continue;
    if (auto late = waits.passed(quiet)) return failures.blame(*std::move(late));
  }
  return {};
}

void WorkerGroup::Impl::end_all() {
  ending = true;
  for (const auto& worker : workers) {
    worker->input().send({{"stop", true}});
    worker->input().close();
  }
  const Deadline grace = Deadline::after_s(options.kill_grace_s);
  for (;;) {
    const double wait_s = std::min(grace.left_s(), waits.may_end_alone_s());
    // The only error during shutdown is a second signal, which skips the grace period.
    if (wait_s <= 0 || !wait_and_handle(Deadline::after_s(wait_s))) break;
  }
  for (const auto& worker : workers) worker->kill();
  const Deadline gone = Deadline::after_s(1);
  while (!none_runs() && !gone.passed()) (void)wait_and_handle(gone);
  for (const auto& worker : workers) {
    if (worker->running()) warn(fmt::format("{} cannot be killed", worker->spec().name));
  }
}

Result<void> WorkerGroup::Impl::wait_and_handle(const Deadline& deadline) {
  const PollOutcome outcome = poll_workers(workers, *signals, deadline);
  quiet = outcome.timed_out;
  for (const auto& [stream, worker] : outcome.ready) {
    switch (stream) {
      case Stream::kInput:
        worker->input().flush();
        break;
      case Stream::kOutput:
        MOTLEY_TRY(handle_output(*worker));
        break;
      case Stream::kErrors:
        worker->read_errors();
        break;
      case Stream::kExit:
        MOTLEY_TRY(handle_exit(*worker));
        break;
      case Stream::kSignal:
        MOTLEY_TRY(handle_signal());
        break;
    }
  }
  return {};
}

Result<void> WorkerGroup::Impl::handle_output(Worker& worker) {
  Result<std::vector<Json>> events = worker.read_events();
  if (ending) return {};
  if (!events) {
    group_events->fail(worker, FailureKind::kCertain, std::move(events).error());
    return {};
  }
  for (const Json& event : *events) {
    if (!worker.failed) MOTLEY_TRY(group_events->handle(worker, event));
  }
  return {};
}

Result<void> WorkerGroup::Impl::handle_exit(Worker& worker) {
  const ProcessExit exit = worker.reap();
  for (int i = 0; i < kDrainReads && worker.errors_open(); ++i) worker.read_errors();
  for (int i = 0; i < kDrainReads && worker.output_open(); ++i) MOTLEY_TRY(handle_output(worker));
  if (ending || worker.failed) return {};
  if (failures.empty() && starter.starts_again(worker, exit)) return {};
  if (!worker.done) {
    group_events->fail(worker, FailureKind::kCertain, worker.death(exit));
  } else if (exit.signal != 0 || exit.status != 0) {
    warn(fmt::format("after its job, {}", worker.death(exit).what));
  }
  return {};
}

Result<void> WorkerGroup::Impl::handle_signal() {
  std::optional<Error> stop = signals->take();
  if (!stop) return {};
  if (ending) return *std::move(stop);
  const bool can_finish = options.on_finish && waits.started();
  const StopAction action = stop_policy.on_signal(*stop, can_finish, now_s());
  if (action == StopAction::kTerminate) return *std::move(stop);
  if (action == StopAction::kIgnore) return {};
  options.on_finish(*stop);
  finish();
  return {};
}

WorkerGroup::WorkerGroup(std::vector<WorkerSpec> workers,
                         WorkerGroupOptions options,
                         const Log& log)
    : impl_(std::make_unique<Impl>(std::move(workers), std::move(options), log)) {}

WorkerGroup::~WorkerGroup() = default;

void WorkerGroup::send(int worker, const Json& message) {
  impl_->workers[static_cast<std::size_t>(worker)]->input().send(message);
}

void WorkerGroup::finish() {
  impl_->finish();
}

double WorkerGroup::progress_at_s() const {
  double last_s = 0;
  for (const auto& worker : impl_->workers) last_s = std::max(last_s, worker->progress_at_s);
  return last_s;
}

const std::optional<Error>& WorkerGroup::finished_by() const {
  return impl_->stop_policy.finished_by();
}

Result<void> WorkerGroup::run(const EventHandler& on_event) {
  return impl_->run(on_event);
}

}  // namespace motley
