#include "tests/checkpoint/disk_copy.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

namespace motley::testing {

namespace fs = std::filesystem;

void DiskCopy::show(const DiskTree& tree) {
  // Longest paths first, so that folders are empty when they are removed.
  for (auto it = shown_.rbegin(); it != shown_.rend(); ++it) {
    const auto wanted = tree.find(it->first);
    const bool stays = wanted != tree.end() && wanted->second.has_value() == it->second.has_value();
    if (!stays) fs::remove(path() / it->first);
  }
  for (const auto& [name, bytes] : tree) {
    const auto shown = shown_.find(name);
    if (shown != shown_.end() && shown->second == bytes) continue;
    if (bytes) {
      write_bytes(path() / name, *bytes);
    } else {
      fs::create_directory(path() / name);
    }
  }
  shown_ = tree;
}

void DiskCopy::forget() {
  for (const auto& entry : fs::directory_iterator(path())) fs::remove_all(entry.path());
  shown_.clear();
}

DiskTree read_tree(const fs::path& folder) {
  DiskTree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    tree[name] = entry.is_directory() ? std::nullopt : std::optional(read_bytes(entry.path()));
  }
  return tree;
}

std::size_t fingerprint(const DiskTree& tree, const std::string& more) {
  std::string text = more;
  for (const auto& [path, bytes] : tree) {
    text += fmt::format("\n{} {}\n", path, bytes ? static_cast<long>(bytes->size()) : -1L);
    if (bytes) text += *bytes;
  }
  return std::hash<std::string>()(text);
}

}  // namespace motley::testing
