#include "cluster/lock/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/secret.h"
#include "base/system/files.h"
#include "checkpoint/launch_mark.h"
#include "cluster/lock/launch_record.h"
#include "cluster/process/owned_fd.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Seconds that go on while the machine sleeps.
double seconds_asleep_or_not() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Result<LaunchRecord> record_of_launch_after(std::int64_t last, const fs::path& run_dir) {
  constexpr std::size_t kNonceBytes = 8;
  if (last >= std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("no launch can follow {}", launch_file(run_dir, last).string()),
                 "the number of a launch has 32 bits",
                 "remove that file, which no launcher has made"};
  }
  MOTLEY_ASSIGN(const std::string random, make_secret());
  const LaunchId id{static_cast<std::uint32_t>(last + 1),
                    to_hex(std::span(random).first(kNonceBytes))};
  return LaunchRecord{
      .number = id.number,
      .launch = launch_text(id),
      .process = this_process(),
      .since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)))};
}

Error held_by(const fs::path& run_dir, const LaunchRecord& holder) {
  return {ErrorCode::kPeer, fmt::format("another launcher runs in {}", run_dir.string()),
          fmt::format("{}; a run folder has one launcher at a time", describe_launch(holder)),
          "follow it in its metrics.jsonl, wait until it has ended or end it, or choose another "
          "folder by --run"};
}

enum class Watched { kHeld, kGone, kChanged };

// Looks for a sign of a launcher that cannot be seen from here; `holder` becomes what it says last.
Watched watch(const fs::path& run_dir, LaunchRecord& holder, double stale_s) {
  const Deadline deadline = Deadline::after_s(stale_s);
  while (!deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(stale_s / 10, 0.5)));
    const auto now = read_launch_record(run_dir, holder.number);
    if (!now || now->is_free) return Watched::kChanged;
    if (now->renewed.tv_sec == holder.renewed.tv_sec &&
        now->renewed.tv_nsec == holder.renewed.tv_nsec) {
      continue;
    }
    holder = *now;
    return Watched::kHeld;
  }
  return Watched::kGone;
}

// True when the file is this launch's now; false when another launch was faster.
Result<bool> make_launch_file(const fs::path& path, const LaunchRecord& record) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.open()) {
    if (errno == EEXIST) return false;
    return file_error("make", path, errno);
  }
  const std::string text = launch_record_text(record);
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size()) && ::fsync(fd.get()) == 0) return true;
  const Error error = file_error("write", path, written < 0 ? errno : ENOSPC);
  ::unlink(path.c_str());
  return error;
}

}  // namespace

struct RunLock::Impl {
  Impl(fs::path dir, LaunchRecord mine, Timing how_long)
      : run_dir(std::move(dir)),
        record(std::move(mine)),
        timing(how_long),
        path(launch_file(run_dir, record.number)),
        seen_at_s(seconds_asleep_or_not()) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    // Signals are for the launcher's own thread (cluster/process/stop_signals.h).
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    renewer = std::jthread([this](const std::stop_token& stop) { renew_until(stop); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Impl() {
    renewer.request_stop();
    renewer.join();
    const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    record.is_free = true;
    const std::string text = launch_record_text(record);
    // Where this fails, the next launcher finds out by itself that this one has gone.
    if (!fd.open()) return;
    [[maybe_unused]] const ssize_t written = ::write(fd.get(), text.data(), text.size());
  }

  void renew_until(const std::stop_token& stop) {
    std::mutex waiting;
    std::unique_lock lock(waiting);
    std::condition_variable_any wake;
    while (!stop.stop_requested()) {
      wake.wait_for(lock, stop, std::chrono::duration<double>(timing.renew_s),
                    [] { return false; });
      if (!stop.stop_requested()) renew();
    }
  }

  // Says that this launch is alive, and finds out whether it still holds the folder.
  void renew() {
    const std::lock_guard lock(mutex);
    if (lost) return;
    const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const int problem = fd.open() ? 0 : errno;
    const std::int64_t last = last_launch(run_dir);
    if (last > record.number) {
      lost = Error{
          ErrorCode::kPeer, fmt::format("another launcher has taken {} over", run_dir.string()),
          fmt::format("{}; this one gave no sign of life for a while: it or its machine "
                      "slept, or its disk was away",
                      describe_launch(read_launch_record(run_dir, last).value_or(LaunchRecord{}))),
          "nothing more is written there; follow the other launcher in its metrics.jsonl"};
    } else if (problem == ENOENT || problem == ESTALE) {
      lost = Error{ErrorCode::kPeer,
                   fmt::format("the run folder {} has been taken away", run_dir.string()),
                   fmt::format("{} is not there any more", path.string()),
                   "put the folder back, or start again"};
    } else if (fd.open() && ::futimens(fd.get(), nullptr) == 0) {
      // A file's times need no room on the disk, so a full one does not make this launch look dead.
      seen_at_s = seconds_asleep_or_not();
    }
  }

  [[nodiscard]] bool is_due() {
    const std::lock_guard lock(mutex);
    return seconds_asleep_or_not() - seen_at_s > 2 * timing.renew_s;
  }

  const fs::path run_dir;
  LaunchRecord record;
  const Timing timing;
  const fs::path path;
  std::mutex mutex;
  std::optional<Error> lost;  // guarded by mutex: why this launch holds the folder no more
  double seen_at_s;           // guarded by mutex: when it last held it for certain
  std::jthread renewer;
};

RunLock::RunLock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RunLock::RunLock(RunLock&&) noexcept = default;
RunLock& RunLock::operator=(RunLock&&) noexcept = default;
RunLock::~RunLock() = default;

Result<RunLock> RunLock::take(const fs::path& run_dir, const Log& log) {
  return take(run_dir, log, Timing{});
}

Result<RunLock> RunLock::take(const fs::path& run_dir, const Log& log, Timing timing) {
  constexpr int kAttemptsMax = 100;  // each is lost to a launcher that was faster
  // A file is half-written for a moment only, unless its launcher died just then.
  constexpr int kHalfWrittenMax = 20;
  constexpr std::chrono::milliseconds kMoment(50);
  MOTLEY_TRY(make_folders(launches_folder(run_dir)));
  LaunchRecord holder;
  int half_written = 0;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const std::int64_t last = last_launch(run_dir);
    if (last > 0) {
      const auto found = read_launch_record(run_dir, last);
      const fs::path theirs = launch_file(run_dir, last);
      if (!found && ::access(theirs.c_str(), R_OK) != 0 && errno == EACCES) {
        return file_error("read", theirs, EACCES);
      }
      if (!found) continue;
      holder = *found;
      if (!holder.is_known && ++half_written <= kHalfWrittenMax) {
        std::this_thread::sleep_for(kMoment);
        continue;
      }
      const ProcessFate fate = holder.is_free ? ProcessFate::kGone : fate_of(holder.process);
      if (fate == ProcessFate::kRuns) return held_by(run_dir, holder);
      if (fate == ProcessFate::kElsewhere) {
        log.info(
            fmt::format("{} was taken by {}, which cannot be seen from here; watching for {:g} "
                        "s whether it still runs",
                        run_dir.string(), describe_launch(holder), timing.stale_s));
        const Watched watched = watch(run_dir, holder, timing.stale_s);
        if (watched == Watched::kHeld) return held_by(run_dir, holder);
        if (watched == Watched::kChanged) continue;
      }
    }
    MOTLEY_ASSIGN(LaunchRecord mine, record_of_launch_after(last, run_dir));
    const fs::path path = launch_file(run_dir, mine.number);
    MOTLEY_ASSIGN(const bool made, make_launch_file(path, mine));
    if (!made) continue;
    if (last_launch(run_dir) > mine.number) {
      ::unlink(path.c_str());  // the number had been given, and its file cleaned away
      continue;
    }
    if (last > 0) ::unlink(launch_file(run_dir, last).c_str());
    return RunLock(std::make_unique<Impl>(run_dir, std::move(mine), timing));
  }
  return held_by(run_dir, holder);
}

const std::string& RunLock::launch() const {
  return impl_->record.launch;
}

std::int64_t RunLock::number() const {
  return impl_->record.number;
}

Result<void> RunLock::confirm() {
  if (impl_->is_due()) impl_->renew();
  const std::lock_guard lock(impl_->mutex);
  if (impl_->lost) return *impl_->lost;
  return {};
}

}  // namespace motley
