#include "base/system/system_cores.h"

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#endif

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/system/control_groups.h"

namespace motley {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

// In millionths of a core.
std::int64_t share_of(std::int64_t quota_us, std::int64_t period_us) {
  if (quota_us == kNoGroupLimit || period_us <= 0) return kNoGroupLimit;
  return static_cast<std::int64_t>(static_cast<double>(quota_us) * kMillion /
                                   static_cast<double>(period_us));
}

// The quota is -1 if there is none.
std::int64_t quota_v1(const std::filesystem::path& group) {
  return share_of(group_number(group / "cpu.cfs_quota_us", kNoGroupLimit),
                  group_number(group / "cpu.cfs_period_us", 0));
}

// "50000 100000", or "max 100000" if there is no quota.
std::int64_t quota_v2(const std::filesystem::path& group) {
  std::ifstream in(group / "cpu.max");
  std::int64_t quota_us = 0;
  std::int64_t period_us = 0;
  return in >> quota_us >> period_us ? share_of(quota_us, period_us) : kNoGroupLimit;
}

// The numbers of the processors that this process may run on.
std::vector<int> allowed_processors() {
  std::vector<int> numbers;
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int number = 0; number < CPU_SETSIZE; ++number) {
      if (CPU_ISSET(number, &allowed)) numbers.push_back(number);
    }
    return numbers;
  }
#endif
  const int count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (int number = 0; number < count; ++number) numbers.push_back(number);
  return numbers;
}

// The fields of the first processor, in the system's order; values keep their leading space.
std::vector<std::pair<std::string, std::string>> first_processor() {
  std::vector<std::pair<std::string, std::string>> fields;
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line) && !(line.empty() && !fields.empty());) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    fields.emplace_back(line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1),
                        line.substr(colon + 1));
  }
  return fields;
}

}  // namespace

void yield_cores() {
#ifdef __linux__
  // On Linux, process number 0 means the calling thread, not its process as in POSIX. Each of the
  // ten steps is a factor of 1.25.
  constexpr int kSteps = 10;
  ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kSteps);
#endif
}

double control_group_cores(const std::filesystem::path& own_groups,
                           const std::filesystem::path& top) {
  const std::int64_t limit = least_group_limit(own_groups, top, "cpu", quota_v1, quota_v2);
  if (limit == kNoGroupLimit) return std::numeric_limits<double>::infinity();
  return static_cast<double>(limit) / kMillion;
}

double usable_cores() {
  return std::min(static_cast<double>(allowed_processors().size()),
                  control_group_cores("/proc/self/cgroup", "/sys/fs/cgroup"));
}

int physical_cores(const std::filesystem::path& top, const std::vector<int>& processors) {
  std::set<std::pair<int, int>> cores;  // of (package, core)
  for (const int number : processors) {
    const std::filesystem::path topology = top / ("cpu" + std::to_string(number)) / "topology";
    int package = 0;
    int core = 0;
    const bool is_known = (std::ifstream(topology / "physical_package_id") >> package) &&
                          (std::ifstream(topology / "core_id") >> core);
    if (!is_known) return static_cast<int>(processors.size());
    cores.emplace(package, core);
  }
  return static_cast<int>(cores.size());
}

int physical_cores() {
  return physical_cores("/sys/devices/system/cpu", allowed_processors());
}

int threads_of_one(const CoreSharers& sharers, bool is_serving, int physical, double usable) {
  const double cores = std::min(static_cast<double>(physical), usable);
  if (sharers.computing == 0) {
    return std::max(1, static_cast<int>(cores / std::max(1, sharers.serving)));
  }
  if (is_serving) return 1;
  return std::max(1, static_cast<int>((cores - sharers.serving) / sharers.computing));
}

int default_threads(const CoreSharers& sharers, bool is_serving, double cpu_share) {
  const double usable = cpu_share > 0 ? std::min(cpu_share, usable_cores()) : usable_cores();
  return threads_of_one(sharers, is_serving, physical_cores(), usable);
}

std::string processor_model() {
  // Fields of the first processor that identify the model: x86 has the first ones, ARM the others.
  constexpr std::array<std::string_view, 9> kModelFields = {
      "model name",      "cpu family",  "model",    "stepping",    "cache size",
      "CPU implementer", "CPU variant", "CPU part", "CPU revision"};
  std::string words;
  for (const auto& [name, value] : first_processor()) {
    if (std::ranges::find(kModelFields, name) == kModelFields.end()) continue;
    if (!words.empty()) words += ',';
    words += value;
  }
  return words;
}

std::string processor_name() {
  for (const auto& [name, value] : first_processor()) {
    if (name == "model name") return value.substr(std::min<std::size_t>(1, value.size()));
  }
  return "";
}

}  // namespace motley
