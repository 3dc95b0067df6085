#include "tests/cluster/own_folders/reported_saves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "base/hash.h"

namespace motley::testing {
namespace {

// Whether a disk holds these bytes in a file of this step and name.
bool holds(const DiskTree& tree,
           std::int64_t step,
           const std::string& name,
           const std::string& bytes) {
  const std::string folder = fmt::format("step-{:06}", step);
  return std::ranges::any_of(tree, [&](const auto& entry) {
    return entry.second == bytes && entry.first.ends_with("/" + name) &&
           entry.first.find(folder) != std::string::npos;
  });
}

}  // namespace

void ReportedSaves::hear(const std::string& mark) {
  std::istringstream words(mark);
  std::string what;
  std::int64_t step = 0;
  int version = 0;
  words >> what >> step >> version;
  Save& save = saves_[step];
  if (what == "begin") save.begun.insert(version);
  if (what == "saved") {
    save.committed = version;
    save.copies.clear();
  }
  if (what == "copied") {
    save.copies.insert(mark);
    if (save.copies.size() == copies_) save.copied = save.committed;
  }
}

void ReportedSaves::go_on_from(std::int64_t step, const std::optional<int>& version) {
  for (auto& [each, save] : saves_) save = {.begun = std::move(save.begun)};
  if (version) saves_[step].committed = version;
}

std::int64_t ReportedSaves::must_be_found(bool lost) const {
  std::int64_t newest = 0;
  for (const auto& [step, save] : saves_) {
    if (lost ? save.copied.has_value() : save.committed.has_value()) newest = step;
  }
  return newest;
}

std::optional<int> ReportedSaves::version_of(const CheckpointMetadata& step_metadata,
                                             const SavedFiles& saved) const {
  const auto save = saves_.find(step_metadata.step());
  if (save == saves_.end()) return {};
  const auto is_of = [&](int version) {
    return std::ranges::all_of(tensor_files(step_metadata.manifest), [&](const WrittenFile& file) {
      const auto bytes = saved.at(version).find(file.name);
      return bytes != saved.at(version).end() &&
             hash128_hex(std::as_bytes(std::span(bytes->second))) == file.hash;
    });
  };
  const auto found = std::ranges::find_if(save->second.begun, is_of);
  return found == save->second.begun.end() ? std::nullopt : std::optional(*found);
}

std::string ReportedSaves::broken_by(const std::optional<RestorePoint>& found,
                                     const StoreInventory& stores,
                                     const DiskTrees& trees,
                                     const SavedFiles& saved,
                                     bool lost) const {
  const std::int64_t least = must_be_found(lost);
  const std::int64_t step = found ? found->step_metadata.step() : 0;
  if (step < least) return fmt::format("step {} is found in place of {}", step, least);
  if (!found) return "";
  const std::optional<int> version = version_of(found->step_metadata, saved);
  if (!version) return fmt::format("step {} was never saved", step);
  const std::optional<int> reported = saves_.at(step).committed;
  if (!lost && step == least && version != reported) {
    return fmt::format("step {} is of version {} in place of {}", step, *version, *reported);
  }
  for (const auto& [file, locations] : found->locations) {
    if (locations.empty()) return fmt::format("no machine has {} of step {}", file, step);
    for (const StoreId& holder : locations) {
      const std::string& machine = stores.by_id.at(holder).machines.front();
      if (holds(trees.at(machine), step, file, saved.at(*version).at(file))) continue;
      return fmt::format("{} does not hold {} of step {} whole", machine, file, step);
    }
  }
  return "";
}

std::string ReportedSaves::text() const {
  std::string text;
  for (const auto& [step, save] : saves_) {
    text += fmt::format("{}: begun {}, saved {}, copied {}; ", step, save.begun,
                        save.committed.value_or(-1), save.copied.value_or(-1));
  }
  return text;
}

}  // namespace motley::testing
