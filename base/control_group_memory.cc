#include "base/control_group_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace motley {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// The names that one version has for the same things.
struct Names {
  const char* limit;
  const char* used;
  const char* droppable;  // key in memory.stat
};

constexpr Names kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kV2{"memory.max", "memory.current", "inactive_file"};

// A file that holds one number; "max", which version 2 writes for no limit, is none.
std::int64_t number_in(const std::filesystem::path& path, std::int64_t otherwise) {
  std::ifstream in(path);
  std::int64_t value = 0;
  return in >> value && value >= 0 ? value : otherwise;
}

// The number behind `key` in a file of "key number" lines.
std::int64_t field_in(const std::filesystem::path& path, const std::string& key) {
  std::ifstream in(path);
  std::int64_t value = 0;
  for (std::string word; in >> word >> value;) {
    if (word == key) return std::max<std::int64_t>(value, 0);
  }
  return 0;
}

std::int64_t left_in(const std::filesystem::path& group, const Names& names) {
  const std::int64_t limit = number_in(group / names.limit, kUnlimited);
  if (limit == kUnlimited) return kUnlimited;
  const std::int64_t used = number_in(group / names.used, 0);
  const std::int64_t droppable = std::min(used, field_in(group / "memory.stat", names.droppable));
  return std::max<std::int64_t>(0, limit - (used - droppable));
}

// The group and all above it. In a container the group's path may be one that only the host has;
// then what can be seen, the top, is the container's own.
std::int64_t least_left(const std::filesystem::path& top, std::string group, const Names& names) {
  std::int64_t least = left_in(top, names);
  while (!group.empty() && group != "/") {
    least = std::min(least, left_in(top / group.substr(1), names));
    group.erase(group.rfind('/'));
  }
  return least;
}

}  // namespace

std::int64_t control_group_memory_left(const std::filesystem::path& own_groups,
                                       const std::filesystem::path& top) {
  std::int64_t least = kUnlimited;
  std::ifstream lines(own_groups);
  // "4:memory:/path" is of version 1, "0::/path" of version 2.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string group = line.substr(second + 1);
    if (!group.starts_with('/')) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, least_left(top / "memory", group, kV1));
    } else if (controllers == ",,") {
      least = std::min(least, least_left(top, group, kV2));
    }
  }
  return least;
}

}  // namespace motley
