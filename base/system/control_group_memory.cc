#include "base/system/control_group_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/system/control_groups.h"

namespace motley {
namespace {

// The file and key names of one control-group version.
struct Names {
  const char* limit;
  const char* used;
  const char* droppable;  // key in memory.stat
};

constexpr Names kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kV2{"memory.max", "memory.current", "inactive_file"};

// The number after `key` in a file of "key number" lines.
std::int64_t field_in(const std::filesystem::path& path, const std::string& key) {
  std::ifstream in(path);
  std::int64_t value = 0;
  for (std::string word; in >> word >> value;) {
    if (word == key) return std::max<std::int64_t>(value, 0);
  }
  return 0;
}

template <const Names& kNames>
std::int64_t left_in(const std::filesystem::path& group) {
  const std::int64_t limit = group_number(group / kNames.limit, kNoGroupLimit);
  if (limit == kNoGroupLimit) return kNoGroupLimit;
  const std::int64_t used = group_number(group / kNames.used, 0);
  const std::int64_t droppable = std::min(used, field_in(group / "memory.stat", kNames.droppable));
  return std::max<std::int64_t>(0, limit - (used - droppable));
}

}  // namespace

std::int64_t control_group_memory_left(const std::filesystem::path& own_groups,
                                       const std::filesystem::path& top) {
  return least_group_limit(own_groups, top, "memory", left_in<kV1>, left_in<kV2>);
}

}  // namespace motley
