#include "base/system_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

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

// A limit file holds one number, or "max" (control groups v2).
std::int64_t limit_in(const char* path) {
  std::ifstream in(path);
  std::int64_t value = 0;
  return in >> value ? value : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

std::int64_t available_memory_bytes() {
  std::int64_t available = kib_field("/proc/meminfo", "MemAvailable:");
  if (available == 0) {
#ifdef _SC_PHYS_PAGES
    available = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
#endif
  }
  available = std::min(available, limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return std::min(available, limit_in("/sys/fs/cgroup/memory.max"));
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

}  // namespace motley
