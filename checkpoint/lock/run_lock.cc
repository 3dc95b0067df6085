#include "checkpoint/lock/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/secret.h"
#include "base/system/blocked_signals.h"
#include "base/system/files.h"
#include "base/system/owned_fd.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/lock/lock_acquirer.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Seconds on a clock that includes system sleep.
double seconds_asleep_or_not() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Result<LaunchId> launch_after(std::int64_t last, const fs::path& run_dir) {
  constexpr std::size_t kNonceBytes = 8;
  if (last >= std::numeric_limits<std::uint32_t>::max()) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("the launch number {} is the last one", launch_file(run_dir, last).string()),
        "the number of a launch has 32 bits", "remove that file, which no launcher has written"};
  }
  MOTLEY_ASSIGN(const std::string random, make_secret());
  return LaunchId{static_cast<std::uint32_t>(last + 1),
                  to_hex(std::span(random).first(kNonceBytes))};
}

Error overtaken(const fs::path& run_dir, const LaunchId& id, const LaunchRecord& last) {
  return {ErrorCode::kPeer, fmt::format("a later launch was started in {}", run_dir.string()),
          fmt::format("launch {} by {}; this is launch {}", last.number, describe_launch(last),
                      id.number),
          "start again: the next launch has a higher number"};
}

// Why a launch whose record cannot be opened has lost its folder; nullopt if that may be temporary.
std::optional<Error> loss_of(const fs::path& run_dir, const fs::path& record) {
  std::error_code code;
  const fs::file_type found = fs::symlink_status(record, code).type();
  if (found == fs::file_type::not_found ||
      code == std::error_code(ESTALE, std::generic_category())) {
    return Error{ErrorCode::kPeer, fmt::format("the run folder {} was removed", run_dir.string()),
                 fmt::format("{} no longer exists", record.string()),
                 "restore the folder, or start again"};
  }
  if (found == fs::file_type::none || found == fs::file_type::regular) return {};
  return Error{ErrorCode::kPeer, fmt::format("{} is not a launch record", record.string()),
               "it is not a regular file, so other launchers cannot see that this one runs",
               "replace it by an empty file, and start again"};
}

}  // namespace

struct RunLock::Impl {
  Impl(fs::path dir, LaunchRecord mine, Timing how_long)
      : run_dir(std::move(dir)),
        record(std::move(mine)),
        timing(how_long),
        path(launch_file(run_dir, record.number)),
        seen_at_s(seconds_asleep_or_not()) {}

  // Holds the folder from now on. Releases it if the renewal thread cannot be started.
  static Result<std::unique_ptr<Impl>> hold(fs::path dir, LaunchRecord mine, Timing how_long) {
    auto impl = std::make_unique<Impl>(std::move(dir), std::move(mine), how_long);
    MOTLEY_TRY(impl->start_renewing());
    return impl;
  }

  ~Impl() {
    renewer.request_stop();
    if (renewer.joinable()) renewer.join();
    record.is_free = true;
    write_record();
  }

  // If it fails, the next launcher detects by itself that this one is gone.
  void write_record() const {
    const std::string text = launch_record_text(record);
    const Result<OwnedFd> fd = open_record();
    if (!fd.ok()) return;
    [[maybe_unused]] const ssize_t written = ::write(fd->get(), text.data(), text.size());
  }

  // Rejects anything but a regular file: a pipe would block, a symbolic link lead elsewhere.
  [[nodiscard]] Result<OwnedFd> open_record() const { return open_regular_file(path, O_WRONLY); }

  Result<void> start_renewing() {
    const BlockedSignals blocked;  // signals are handled by the launcher's main thread
    try {
      renewer = std::jthread([this](const std::stop_token& stop) { renew_until(stop); });
    } catch (const std::system_error& refused) {
      return Error{ErrorCode::kInternal,
                   fmt::format("cannot start the thread that renews {}", run_dir.string()),
                   refused.code().message(),
                   "raise the limit of processes (ulimit -u, or the container's)"};
    }
    return {};
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

  // Renews the record's time, and checks whether this launch still holds the folder.
  void renew() {
    const std::lock_guard lock(mutex);
    if (lost) return;
    const Result<OwnedFd> fd = open_record();
    const std::int64_t last = last_launch(run_dir);
    if (last > record.number) {
      lost = Error{
          ErrorCode::kPeer,
          fmt::format("another launcher has acquired the lock of {}", run_dir.string()),
          fmt::format("{}; this one did not renew it in time: it or its machine slept, or its disk "
                      "was unavailable",
                      describe_launch(read_launch_record(run_dir, last).value_or(LaunchRecord{}))),
          fmt::format("this launcher writes nothing more there; follow the other one with `motley "
                      "watch {}`",
                      run_dir.string())};
    } else if (!fd.ok()) {
      lost = loss_of(run_dir, path);
    } else if (::futimens(fd->get(), nullptr) == 0) {
      // Setting a file's times needs no disk space, so a full disk does not make this launch look
      // dead.
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
  std::optional<Error> lost;  // guarded by mutex: why the folder is lost
  double seen_at_s;           // guarded by mutex: last confirmed hold
  std::jthread renewer;
};

RunLock::RunLock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RunLock::RunLock(RunLock&&) noexcept = default;
RunLock& RunLock::operator=(RunLock&&) noexcept = default;
RunLock::~RunLock() = default;

Result<RunLock> RunLock::acquire(const fs::path& run_dir, const Log& log) {
  return acquire(run_dir, log, Timing{});
}

Result<RunLock> RunLock::acquire(const fs::path& run_dir, const Log& log, Timing timing) {
  MOTLEY_ASSIGN(
      auto mine,
      LockAcquirer(run_dir, log, timing)
          .acquire([&](std::int64_t last, const LaunchRecord&) -> Result<std::optional<LaunchId>> {
            MOTLEY_ASSIGN(LaunchId id, launch_after(last, run_dir));
            return std::optional(std::move(id));
          }));
  MOTLEY_ASSIGN(auto impl, Impl::hold(run_dir, *std::move(mine), timing));
  return RunLock(std::move(impl));
}

Result<std::optional<RunLock>> RunLock::join(const fs::path& run_dir,
                                             const std::string& launch,
                                             const Log& log) {
  return join(run_dir, launch, log, Timing{});
}

Result<std::optional<RunLock>> RunLock::join(const fs::path& run_dir,
                                             const std::string& launch,
                                             const Log& log,
                                             Timing timing) {
  MOTLEY_ASSIGN(const LaunchId id, parse_launch(launch));
  MOTLEY_ASSIGN(auto mine,
                LockAcquirer(run_dir, log, timing, /*is_worker=*/true)
                    .acquire([&](std::int64_t last,
                                 const LaunchRecord& there) -> Result<std::optional<LaunchId>> {
                      if (last < id.number) return std::optional(id);
                      if (there.launch == launch) return std::optional<LaunchId>();
                      return overtaken(run_dir, id, there);
                    }));
  if (!mine) return std::optional<RunLock>();
  MOTLEY_ASSIGN(auto impl, Impl::hold(run_dir, *std::move(mine), timing));
  return std::optional(RunLock(std::move(impl)));
}

Result<void> RunLock::advance_past(std::int64_t least, const Log& log) {
  if (number() > least) return {};
  const fs::path run_dir = impl_->run_dir;
  const Timing timing = impl_->timing;
  impl_.reset();  // releases the folder
  MOTLEY_ASSIGN(
      auto mine,
      LockAcquirer(run_dir, log, timing)
          .acquire([&](std::int64_t last, const LaunchRecord&) -> Result<std::optional<LaunchId>> {
            MOTLEY_ASSIGN(LaunchId id, launch_after(std::max(last, least), run_dir));
            return std::optional(std::move(id));
          }));
  MOTLEY_ASSIGN(impl_, Impl::hold(run_dir, *std::move(mine), timing));
  return {};
}

const std::string& RunLock::launch() const {
  return impl_->record.launch;
}

std::int64_t RunLock::number() const {
  return impl_->record.number;
}

void RunLock::leave() {
  impl_->record.is_left = true;
  impl_->write_record();
}

Result<void> RunLock::confirm() {
  if (impl_->is_due()) impl_->renew();
  const std::lock_guard lock(impl_->mutex);
  if (impl_->lost) return *impl_->lost;
  return {};
}

}  // namespace motley
