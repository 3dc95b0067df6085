#include "checkpoint/lock/lock_acquirer.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/system/files.h"
#include "base/system/owned_fd.h"
#include "checkpoint/lock/await_workers.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

LaunchRecord record_of(const LaunchId& id, bool is_worker) {
  return {.number = id.number,
          .launch = launch_text(id),
          .process = this_process(),
          .since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr))),
          .is_of_worker = is_worker};
}

Error held_by(const fs::path& run_dir, const LaunchRecord& holder) {
  return {ErrorCode::kPeer, fmt::format("another launcher runs in {}", run_dir.string()),
          fmt::format("{}; a run folder has one launcher at a time", describe_launch(holder)),
          fmt::format("follow it with `motley watch {}`, wait for its end or end it{}, or choose "
                      "another folder with --run",
                      run_dir.string(),
                      holder.is_of_worker ? " on the machine where it was started" : "")};
}

enum class Watched { kHeld, kGone, kChanged };

// Watches for renewals by a launcher with an invisible process; updates `holder`.
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

// On a full disk, deletes the finished previous launch's record to make space for this one.
ssize_t write_in_place_of(const fs::path& before, const OwnedFd& fd, const std::string& text) {
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  const bool is_full = written >= 0 ? static_cast<std::size_t>(written) < text.size()
                                    : errno == ENOSPC || errno == EDQUOT;
  if (!is_full || before.empty()) return written;
  ::unlink(before.c_str());
  return ::pwrite(fd.get(), text.data(), text.size(), 0);
}

// Returns true if this launch created the file, false if another launch was faster. `before`: the
// previous launch's record, which this one replaces; empty = none.
Result<bool> make_launch_file(const fs::path& path,
                              const fs::path& before,
                              const LaunchRecord& record) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.open()) {
    if (errno == EEXIST) return false;
    return file_error("create", path, errno);
  }
  const std::string text = launch_record_text(record);
  const ssize_t written = write_in_place_of(before, fd, text);
  Result<void> kept = written == static_cast<ssize_t>(text.size()) && ::fsync(fd.get()) == 0
                          ? sync_folder(path.parent_path())
                          : file_error("write", path, written < 0 ? errno : ENOSPC);
  if (kept.ok()) return true;
  // One of the two files must remain, so that no number is reused.
  if (before.empty() || ::access(before.c_str(), F_OK) == 0) ::unlink(path.c_str());
  return std::move(kept).error();
}

// Whether the path is, for example, a pipe or a dangling symbolic link.
bool is_another_kind(const fs::path& path) {
  std::error_code code;
  const fs::file_type type = fs::symlink_status(path, code).type();
  return type != fs::file_type::none && type != fs::file_type::not_found &&
         type != fs::file_type::regular;
}

}  // namespace

Result<std::optional<LaunchRecord>> LockAcquirer::acquire(const NextLaunch& next) {
  constexpr int kAttemptsMax = 100;  // each fails against a faster launcher
  MOTLEY_TRY(make_durable_folders(launches_folder(run_dir_)));
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const std::int64_t last = last_launch(run_dir_);
    if (last > 0) {
      MOTLEY_ASSIGN(const bool has_read, read_holder(last));
      if (!has_read) continue;
    }
    MOTLEY_ASSIGN(const std::optional<LaunchId> id, next(last, holder_));
    if (!id) return std::optional<LaunchRecord>();
    if (last > 0) {
      MOTLEY_ASSIGN(const bool is_free, await_free());
      if (!is_free) continue;
      // A launcher that released the folder has stopped its workers.
      const bool has_lost_workers = holder_.is_of_worker ? holder_.is_left : !holder_.is_free;
      if (has_lost_workers) await_workers(run_dir_, holder_, timing_.saving_s, log_);
    }
    LaunchRecord mine = record_of(*id, is_worker_);
    const fs::path path = launch_file(run_dir_, mine.number);
    const fs::path before = last > 0 ? launch_file(run_dir_, last) : fs::path();
    MOTLEY_ASSIGN(const bool made, make_launch_file(path, before, mine));
    if (!made) continue;
    if (last_launch(run_dir_) > mine.number) {
      ::unlink(path.c_str());  // the number was already used, and its file removed
      continue;
    }
    if (last > 0) ::unlink(before.c_str());
    return std::optional(std::move(mine));
  }
  return held_by(run_dir_, holder_);
}

Result<bool> LockAcquirer::read_holder(std::int64_t last) {
  // A file is half-written only briefly, unless its launcher was killed just then.
  constexpr int kHalfWrittenMax = 20;
  constexpr std::chrono::milliseconds kMoment(50);
  const auto found = read_launch_record(run_dir_, last);
  const fs::path theirs = launch_file(run_dir_, last);
  if (!found && ::access(theirs.c_str(), R_OK) != 0 && errno == EACCES) {
    return file_error("read", theirs, EACCES);
  }
  if (!found && is_another_kind(theirs)) {
    return Error{ErrorCode::kCorrupt, fmt::format("cannot read {}", theirs.string()),
                 "it is not a regular file", "replace it by an empty file, and start again"};
  }
  if (!found) return false;
  holder_ = *found;
  if (holder_.is_known || ++half_written_ > kHalfWrittenMax) return true;
  std::this_thread::sleep_for(kMoment);
  return false;
}

Result<bool> LockAcquirer::await_free() {
  const ProcessLiveness fate =
      holder_.is_free ? ProcessLiveness::kGone : liveness_of(holder_.process);
  if (fate == ProcessLiveness::kRuns) return held_by(run_dir_, holder_);
  if (fate == ProcessLiveness::kGone) return true;
  // No other computer can be writing to this disk, so its process was here and ended with the boot.
  if (is_of_earlier_boot(holder_.process) && is_on_own_disk(run_dir_)) return true;
  log_.info(
      fmt::format("{} is locked by {}, which is not visible from here; checking for {:g} s whether "
                  "it still runs",
                  run_dir_.string(), describe_launch(holder_), timing_.stale_s));
  const Watched watched = watch(run_dir_, holder_, timing_.stale_s);
  if (watched == Watched::kHeld) return held_by(run_dir_, holder_);
  return watched == Watched::kGone;
}

}  // namespace motley
