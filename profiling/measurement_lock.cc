#include "profiling/measurement_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/system/files.h"
#include "base/system/process_identity.h"

namespace motley {
namespace {

constexpr const char* kPrefix = ".measuring-";

// Removes files from long before. Another computer that is measuring has just touched its own file.
void remove_old(const std::filesystem::path& folder) {
  constexpr auto kOld = std::chrono::days(30);
  std::error_code code;
  std::vector<std::filesystem::path> old;
  for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    std::error_code unknown;
    const auto touched = entry->last_write_time(unknown);
    const auto age = std::filesystem::file_time_type::clock::now() - touched;
    if (!unknown && age > kOld) old.push_back(entry->path());
  }
  for (const std::filesystem::path& path : old) std::filesystem::remove(path, code);
}

}  // namespace

MeasurementLock::MeasurementLock(const std::filesystem::path& folder) {
  if (folder.empty() || !make_folders(folder)) return;
  // Folders may be shared between computers, which need not wait for each other.
  const std::filesystem::path file =
      folder / fmt::format("{}{:016x}", kPrefix, hash64(this_process().place));
  fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ >= 0) (void)::futimens(fd_, nullptr);
  remove_old(folder);
}

MeasurementLock::~MeasurementLock() {
  if (fd_ >= 0) ::close(fd_);
}

bool MeasurementLock::lock_shared_for(double stall_timeout_s,
                                      const std::function<void()>& on_wait) {
  return take(LOCK_SH, stall_timeout_s, on_wait);
}

bool MeasurementLock::lock_exclusive_for(double stall_timeout_s,
                                         const std::function<void()>& on_wait) {
  return take(LOCK_EX, stall_timeout_s, on_wait);
}

bool MeasurementLock::take(int how, double stall_timeout_s, const std::function<void()>& on_wait) {
  constexpr auto kBetweenTrials = std::chrono::milliseconds(20);
  if (fd_ < 0) return false;
  (void)::flock(fd_, LOCK_UN);
  const Deadline deadline = Deadline::after_s(stall_timeout_s);
  while (::flock(fd_, how | LOCK_NB) != 0) {
    if (deadline.passed()) return false;
    if (on_wait) on_wait();
    std::this_thread::sleep_for(kBetweenTrials);
  }
  return true;
}

}  // namespace motley
