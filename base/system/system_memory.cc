#include "base/system/system_memory.h"

#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/system/control_group_memory.h"

namespace motley {
namespace {

// The number after `key` in a file of "Key:   123 kB" lines.
std::int64_t kib_field(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string word; in >> word;) {
    std::int64_t value = 0;
    if (word == key && in >> value) return value * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t computer_memory_bytes() {
  const std::int64_t available = kib_field("/proc/meminfo", "MemAvailable:");
  return available == 0 ? installed_memory_bytes() : available;
}

std::int64_t installed_memory_bytes() {
#ifdef _SC_PHYS_PAGES
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
#else
  return 0;
#endif
}

std::int64_t available_memory_bytes() {
  return std::min(computer_memory_bytes(),
                  control_group_memory_left("/proc/self/cgroup", "/sys/fs/cgroup"));
}

std::int64_t resident_bytes() {
  return kib_field("/proc/self/status", "VmRSS:");
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
#endif
}

std::int64_t spare_memory_bytes() {
  const std::int64_t available = available_memory_bytes();
  const std::int64_t comes_back =
      std::max<std::int64_t>(0, peak_resident_bytes() - resident_bytes());
  return std::max<std::int64_t>(0, available - available / 10 - comes_back);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  // Allocate everything from the heap: mmap's threshold cannot exceed 32 MiB, so every larger
  // tensor would be mapped anew, and its pages cleared.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

void release_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace motley
