#include "worker/replication/folder_replicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "checkpoint/replication/folder_id.h"
#include "checkpoint/replication/shard_set.h"
#include "protocol/store_message.h"
#include "protocol/text_pieces.h"
#include "worker/replication/file_copies.h"

namespace motley {

struct FolderReplicator::Impl {
  Impl(const Job& given, LauncherChannel& channel, ProgressCounter& counter)
      : job(given), launcher(channel), work(counter) {}

  void listen(const std::stop_token& stop) {
    constexpr double kListen_s = 0.1;
    bool is_left = false;
    while (!stop.stop_requested()) {
      if (is_own() && launcher.is_launcher_lost() && !std::exchange(is_left, true)) lock->leave();
      const Result<Json> message =
          launcher.receive(Deadline::after_s(kListen_s), "outcome of a save");
      if (message.ok()) hear(*message, stop);
    }
  }

  void hear(const Json& message, const std::stop_token& stop) {
    if (message.contains(kDropKey) && message[kDropKey].is_number_integer()) {
      const auto step = message[kDropKey].get<std::int64_t>();
      return done(step,
                  is_own() ? discard_partial({job.run_dir, job.launch, step}) : Result<void>());
    }
    if (!message.contains(kKeepKey)) return;
    const Result<std::optional<std::string>> text = pieces.add(message[kKeepKey]);
    if (!text.ok()) return end_with(text.error());
    if (!*text) return;
    const Result<ReplicationOrder> order =
        replication_order_from_text(**text, "the launcher's message about a save");
    if (!order.ok()) return end_with(order.error());
    const Result<void> kept = is_own() ? keep(*order, stop) : Result<void>();
    // An interrupted adoption leaves the files in place, where the next launch finds them.
    if (!kept.ok() && kept.error().code == ErrorCode::kInterrupted) return;
    if (!order->adopts) copies->add(*order);
    done(order->step_metadata.step(), kept);
  }

  // Whether this rank manages the folder; the launcher manages its own.
  [[nodiscard]] bool is_own() const { return lock.has_value(); }

  [[nodiscard]] Result<void> keep(const ReplicationOrder& order, const std::stop_token& stop) {
    MOTLEY_TRY(lock->confirm());
    MOTLEY_TRY(order.adopts
                   ? adopt_shards(job.run_dir, job.launch, order.step_metadata, &work, stop)
                   : store_shards(job.run_dir, job.launch, order.step_metadata));
    return prune_to(job.run_dir, {order.retained_steps.begin(), order.retained_steps.end()},
                    job.launch, order.step_metadata.step());
  }

  // Without knowing the next files, this rank cannot continue.
  void end_with(const Error& error) {
    Json event = error_to_json(error);
    event["event"] = "error";
    launcher.send(event);
  }

  void fail(std::int64_t step, const Error& error) {
    Json event = error_to_json(error);
    event["event"] = "keep_failed";
    event["step"] = step;
    launcher.send(event);
  }

  void done(std::int64_t step, const Result<void>& result) {
    if (!result.ok()) fail(step, result.error());
    const std::lock_guard lock_done(mutex);
    done_step = std::max(done_step, step);
    changed.notify_all();
  }

  const Job& job;
  LauncherChannel& launcher;
  ProgressCounter& work;
  const Log log{"", LogLevel::kWarn};
  std::optional<RunLock> lock;                // of the machine's own folder
  std::optional<FileCopies> copies;           // set by start()
  std::optional<StallTimeout> stall_timeout;  // set by start()
  PieceJoiner pieces;                         // used by the thread

  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t done_step = 0;  // guarded by mutex: the last save whose outcome was handled
  std::jthread thread;         // declared last, so that it is destroyed first
};

FolderReplicator::FolderReplicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FolderReplicator::~FolderReplicator() = default;

Result<std::unique_ptr<FolderReplicator>> FolderReplicator::open(const Job& job,
                                                                 LauncherChannel& launcher,
                                                                 ProgressCounter& work) {
  auto impl = std::make_unique<Impl>(job, launcher, work);
  if (!job.store.empty()) {
    MOTLEY_ASSIGN(impl->lock, RunLock::join(job.run_dir, job.launch, impl->log));
    if (!impl->lock) {
      return Error{ErrorCode::kInternal, fmt::format("two ranks keep the folder {}", job.run_dir),
                   "", ""};
    }
    MOTLEY_TRY(write_run_id(job.run_dir, job.run_id));
  }
  return std::unique_ptr<FolderReplicator>(new FolderReplicator(std::move(impl)));
}

void FolderReplicator::start(const FrameLink& link, const StallTimeout& stall_timeout) {
  impl_->stall_timeout = stall_timeout;
  impl_->copies.emplace(impl_->job, link, stall_timeout, impl_->launcher, impl_->work);
  impl_->thread =
      std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->listen(stop); });
  impl_->launcher.send({{"event", "keeper"}});
}

Result<void> FolderReplicator::finish(std::int64_t last_saved_step) {
  constexpr std::chrono::milliseconds kMoment(250);
  const Deadline deadline = impl_->stall_timeout->deadline();
  {
    std::unique_lock lock(impl_->mutex);
    const auto is_done = [&] { return impl_->done_step >= last_saved_step; };
    while (!impl_->changed.wait_for(lock, kMoment, is_done)) {
      // The next launch commits the save, and does the rest.
      if (impl_->launcher.is_launcher_lost()) return {};
      if (!deadline.passed()) continue;
      return Error{ErrorCode::kPeer,
                   fmt::format("the launcher did not report the outcome of the save of step {}",
                               last_saved_step),
                   "", "resume the run; the written files are found"};
    }
  }
  const ProgressCounter::Task copying(impl_->work, "copying the checkpoint between machines", 0);
  impl_->copies->finish();
  return {};
}

}  // namespace motley
