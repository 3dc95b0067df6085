#include "data/files/left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/result.h"

namespace motley {
namespace {

constexpr std::size_t kNamesMax = 3;

constexpr std::array<std::string_view, 12> kLeftovers = {".ds_store",
                                                         ".localized",
                                                         ".spotlight-v100",
                                                         ".trashes",
                                                         ".fseventsd",
                                                         "__macosx",
                                                         "thumbs.db",
                                                         "ehthumbs.db",
                                                         "desktop.ini",
                                                         "$recycle.bin",
                                                         "system volume information",
                                                         "@eadir"};

}  // namespace

bool is_system_leftover(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  if (name.starts_with("._")) return true;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kLeftovers, name) != kLeftovers.end();
}

void LeftOut::add(std::string_view reason, const std::filesystem::path& path) {
  auto group = std::ranges::find(groups_, reason, &Group::reason);
  if (group == groups_.end()) group = groups_.insert(group, Group{std::string(reason), 0, {}});
  if (++group->count <= kNamesMax) group->first.push_back(path);
}

std::string LeftOut::line(const std::filesystem::path& folder) const {
  std::string text;
  for (const Group& group : groups_) {
    std::string names;
    for (const auto& path : group.first) {
      const std::string name = excerpt(path.lexically_relative(folder).string());
      names += (names.empty() ? "" : ", ") + name;
    }
    if (group.count > kNamesMax) names += ", …";
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", group.count, group.reason, names);
  }
  return fmt::format("left out of {}: {}", folder.string(), text);
}

}  // namespace motley
