#include "base/system/control_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace motley {
namespace {

// The limit of the group and its ancestors. In a container, the group's path may exist only on the
// host; then the visible root, `top`, is the container's own group.
std::int64_t least_limit(const std::filesystem::path& top, std::string group, ReadGroupLimit read) {
  std::int64_t least = read(top);
  while (!group.empty() && group != "/") {
    least = std::min(least, read(top / group.substr(1)));
    group.erase(group.rfind('/'));
  }
  return least;
}

}  // namespace

std::int64_t group_number(const std::filesystem::path& path, std::int64_t otherwise) {
  std::ifstream in(path);
  std::int64_t value = 0;
  return in >> value && value >= 0 ? value : otherwise;
}

std::int64_t least_group_limit(const std::filesystem::path& own_groups,
                               const std::filesystem::path& top,
                               const std::string& controller,
                               ReadGroupLimit read_v1,
                               ReadGroupLimit read_v2) {
  std::int64_t least = kNoGroupLimit;
  std::ifstream lines(own_groups);
  // "4:memory:/path" is of version 1, "0::/path" of version 2.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string group = line.substr(second + 1);
    if (!group.starts_with('/')) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) !=
        std::string::npos) {
      least = std::min(least, least_limit(top / controller, group, read_v1));
    } else if (controllers.empty()) {
      least = std::min(least, least_limit(top, group, read_v2));
    }
  }
  return least;
}

}  // namespace motley
