#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "base/process/cpu_quota.h"
#include "base/system/owned_fd.h"

namespace motley {
namespace {

// Short periods keep a throttled worker's pauses well below the time of a micro-batch.
constexpr long kPeriod_us = 20'000;
constexpr long kQuotaLeast_us = 1'000;  // the kernel's minimum

Error quota_error(const std::string& cause) {
  return {ErrorCode::kInternal, "cannot limit the processor time of a process", cause,
          "limits need root and a 'cpu' control group controller"};
}

// A control file takes its whole text in one write, which also reports an error.
Result<void> write_control(const std::filesystem::path& file, const std::string& text) {
  const OwnedFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.open() ||
      ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return quota_error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  }
  return {};
}

bool lists_cpu(const std::filesystem::path& file) {
  std::ifstream words(file);
  for (std::string word; words >> word;) {
    if (word == "cpu") return true;
  }
  return false;
}

// This process's own group in the v1 hierarchy of the cpu controller, so that limits nest. Lines
// are "number:controllers:path". In a container the path may not be visible; the result is then
// `top`.
std::filesystem::path own_group_v1(const std::filesystem::path& top) {
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers.find(",cpu,") == std::string::npos) continue;
    const std::filesystem::path own = top / line.substr(second + 1).erase(0, 1);
    std::error_code ignored;
    if (std::filesystem::is_directory(own, ignored)) return own;
  }
  return top;
}

Result<void> set_quota(const std::filesystem::path& folder, bool v2, long quota_us) {
  if (v2) return write_control(folder / "cpu.max", fmt::format("{} {}", quota_us, kPeriod_us));
  MOTLEY_TRY(write_control(folder / "cpu.cfs_period_us", std::to_string(kPeriod_us)));
  return write_control(folder / "cpu.cfs_quota_us", std::to_string(quota_us));
}

}  // namespace

Result<CpuQuota> CpuQuota::create(const std::string& name, double cores) {
  const std::filesystem::path top_v1 = "/sys/fs/cgroup/cpu";
  const std::filesystem::path top_v2 = "/sys/fs/cgroup";
  std::error_code ignored;
  const bool v1 = std::filesystem::exists(top_v1 / "cgroup.procs", ignored);
  if (!v1 && !lists_cpu(top_v2 / "cgroup.controllers")) {
    return quota_error("no control group hierarchy with a cpu controller under /sys/fs/cgroup");
  }
  // In v2 a group that contains processes cannot delegate controllers, so the new group is at the
  // top.
  if (!v1 && !lists_cpu(top_v2 / "cgroup.subtree_control")) {
    MOTLEY_TRY(write_control(top_v2 / "cgroup.subtree_control", "+cpu"));
  }
  const std::filesystem::path folder = (v1 ? own_group_v1(top_v1) : top_v2) / name;
  ::rmdir(folder.c_str());  // an empty group of that name is left by a program that was killed
  if (::mkdir(folder.c_str(), 0755) != 0) {
    return quota_error(fmt::format("no control group can be made in {}: {}{}",
                                   folder.parent_path().string(), std::strerror(errno),
                                   errno == EACCES ? "; that takes root" : ""));
  }
  CpuQuota quota(folder);
  const long quota_us = std::max(kQuotaLeast_us, std::lround(cores * kPeriod_us));
  MOTLEY_TRY(set_quota(folder, !v1, quota_us));
  return quota;
}

CpuQuota::CpuQuota(std::filesystem::path folder) : folder_(std::move(folder)) {}

CpuQuota::CpuQuota(CpuQuota&& other) noexcept
    : folder_(std::exchange(other.folder_, std::filesystem::path())) {}

CpuQuota::~CpuQuota() {
  if (folder_.empty()) return;
  // Killed grandchildren count as members until the kernel has finished with them.
  for (int attempt = 0; attempt < 50 && ::rmdir(folder_.c_str()) != 0 && errno == EBUSY;
       ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
}

Result<void> CpuQuota::add(pid_t pid) const {
  return write_control(folder_ / "cgroup.procs", std::to_string(pid));
}

}  // namespace motley
