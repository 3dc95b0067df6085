#include "tests/checkpoint/cut_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <optional>

namespace motley::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFaultsMax = 8;
constexpr int kAllCombinationsMax = 6;  // names and blocks
constexpr std::size_t kKeptEvery = 97;  // states

std::size_t fingerprint(const DiskTree& tree, const std::string& more) {
  std::string text = more;
  for (const auto& [path, bytes] : tree) {
    text += fmt::format("\n{} {}\n", path, bytes ? static_cast<long>(bytes->size()) : -1L);
    if (bytes) text += *bytes;
  }
  return std::hash<std::string>()(text);
}

}  // namespace

void DiskCopy::show(const DiskTree& tree) {
  // The longest paths first, so that folders are empty when it is their turn.
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

void CutCheck::run(const DiskTree& before,
                   const std::vector<DiskOperation>& log,
                   Promises promises) {
  DiskModel model(before);
  look_at(model, promises, 0);
  for (std::size_t i = 0; i < log.size() && tally_.faults.size() < kFaultsMax; ++i) {
    if (log[i].action == DiskAction::kMark) promises.hear(log[i].other);
    model.apply(log[i]);
    look_at(model, promises, i + 1);
  }
}

void CutCheck::look_at(const DiskModel& model, const Promises& promises, std::size_t place) {
  ++tally_.cuts;
  for (const bool names : {false, true}) {
    for (const bool bytes : {false, true}) {
      EvenCut cut(names, bytes);
      look_at(model.after(cut), promises, place,
              fmt::format("{} names and {} bytes that were not synced", names ? "all" : "no",
                          bytes ? "all" : "no"));
    }
  }
  CountedCut nothing(0);
  (void)model.after(nothing);
  if (nothing.count() <= kAllCombinationsMax) {
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << nothing.count(); ++bits) {
      CountedCut cut(bits);
      look_at(model.after(cut), promises, place, fmt::format("combination {:b}", bits));
    }
  }
  for (int i = 0; i < random_states_; ++i) {
    const std::uint64_t seed = place * 1'000'003 + static_cast<std::uint64_t>(i);
    RandomCut cut(seed);
    look_at(model.after(cut), promises, place, fmt::format("seed {}", seed));
  }
}

void CutCheck::look_at(const DiskTree& tree,
                       const Promises& promises,
                       std::size_t place,
                       const std::string& cut) {
  if (tally_.faults.size() >= kFaultsMax) return;
  if (!seen_.insert(fingerprint(tree, promises.text())).second) return;
  ++tally_.states;
  disk_.show(tree);
  std::string fault = promises.broken_by(disk_.path());
  if (fault.empty() && tally_.states % kKeptEvery == 0) kept_.emplace_back(tree, promises);
  if (fault.empty() && restart_every_ > 0 && tally_.states % restart_every_ == 0) {
    fault = restart_fault();
  }
  if (!fault.empty()) {
    tally_.faults.push_back(
        fmt::format("after operation {}, {}: {} ({})", place, cut, fault, promises.text()));
  }
}

std::string CutCheck::restart_fault() {
  ++tally_.restarts;
  // A replaced checkpoint may go on standing for its step.
  std::vector<std::string> expected;
  std::int64_t newest = 0;
  for (const CheckpointInfo& info : list_checkpoints(disk_.path())) {
    expected = {info.folder.filename().string()};
    newest = info.step;
  }
  expected.push_back(fmt::format("step-{:06}", newest + 10));

  const SavingLaunch launch(disk_.path(), "000009-0123456789abcdef", 2);
  std::string fault = fault_of(launch.save(newest + 10, 99));
  if (fault.empty()) fault = fault_of(launch.prune());
  const std::vector<std::string> found = names_in(disk_.path() / "checkpoints");
  if (fault.empty() && found != expected) {
    fault = fmt::format("a launch after the cut leaves {} in place of {}", found, expected);
  }
  disk_.forget();
  return fault;
}

}  // namespace motley::testing
