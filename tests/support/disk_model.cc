#include "tests/support/disk_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace motley::testing {
namespace {

// The unit that a disk writes atomically.
constexpr std::size_t kBlockBytes = 512;
constexpr int kAllCombinationsMax = 6;  // names and blocks together

void put(std::string& file, std::size_t offset, std::string_view bytes) {
  if (file.size() < offset + bytes.size()) file.resize(offset + bytes.size(), '\0');
  file.replace(offset, bytes.size(), bytes);
}

double drawn_chance(std::mt19937_64& random) {
  constexpr double kChances[] = {0.03, 0.3, 0.5, 0.7, 0.97, 1};
  return kChances[random() % std::size(kChances)];
}

bool happens(std::mt19937_64& random, double chance) {
  return std::uniform_real_distribution<double>(0, 1)(random) < chance;
}

}  // namespace

std::vector<DiskOperation> parse_disk_log(std::string_view text) {
  std::vector<DiskOperation> operations;
  const auto take = [&](std::size_t count) {
    MOTLEY_CHECK(count <= text.size(), "the log ends within a record");
    const std::string_view taken = text.substr(0, count);
    text.remove_prefix(count);
    return std::string(taken);
  };
  while (!text.empty()) {
    RecordHead head{};
    std::memcpy(&head, take(sizeof head).data(), sizeof head);
    DiskOperation operation{.action = head.action, .path = {}, .offset = head.offset};
    operation.path = take(head.path_bytes);
    operation.other = take(head.other_bytes);
    operation.bytes = take(head.data_bytes);
    operations.push_back(std::move(operation));
  }
  return operations;
}

RandomCut::RandomCut(std::uint64_t seed)
    : random_(seed), name_chance_(drawn_chance(random_)), bytes_chance_(drawn_chance(random_)) {}

bool RandomCut::keeps_name() {
  return happens(random_, name_chance_);
}

Cut::Bytes RandomCut::bytes() {
  if (happens(random_, bytes_chance_)) return Bytes::kThere;
  constexpr Bytes kOthers[] = {Bytes::kLost, Bytes::kLost, Bytes::kZeros, Bytes::kTorn};
  return kOthers[random_() % std::size(kOthers)];
}

void try_cuts(std::size_t place,
              const CutKinds& kinds,
              const std::function<void(Cut& cut, const std::string& words)>& attempt) {
  for (const bool names : {false, true}) {
    for (const bool bytes : {false, true}) {
      EvenCut cut(names, bytes);
      attempt(cut, fmt::format("{} names and {} bytes that were not synced", names ? "all" : "no",
                               bytes ? "all" : "no"));
    }
  }
  int count = 1;
  for (std::uint64_t bits = 0; kinds.combinations && bits < std::uint64_t{1} << count; ++bits) {
    CountedCut cut(bits);
    attempt(cut, fmt::format("combination {:b}", bits));
    count = cut.count();
    if (count > kAllCombinationsMax) break;
  }
  for (int i = 0; i < kinds.random; ++i) {
    const std::uint64_t seed = place * 1'000'003 + static_cast<std::uint64_t>(i);
    RandomCut cut(seed);
    attempt(cut, fmt::format("seed {}", seed));
  }
}

DiskModel::DiskModel(const DiskTree& durable)
    : now_{{.is_folder = true, .names = {}, .bytes = {}}} {
  for (const auto& [path, bytes] : durable) {
    const auto [folder, name] = place(path);
    now_[folder].names[name] = now_.size();
    now_.push_back({.is_folder = !bytes, .names = {}, .bytes = bytes.value_or("")});
  }
  durable_ = now_;
}

std::size_t DiskModel::find(const std::string& path) const {
  std::size_t node = 0;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const auto found = now_[node].names.find(path.substr(begin, end - begin));
    MOTLEY_CHECK(found != now_[node].names.end(), "{} was never created", path);
    node = found->second;
    begin = end + 1;
  }
  return node;
}

std::pair<std::size_t, std::string> DiskModel::place(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {0, path};
  return {find(path.substr(0, slash)), path.substr(slash + 1)};
}

void DiskModel::add(const std::string& path, bool is_folder) {
  const auto [folder, name] = place(path);
  for (Nodes* nodes : {&durable_, &now_}) nodes->push_back({is_folder, {}, {}});
  add_change(
      {.kind = Change::Kind::kName, .owner = folder, .name = name, .child = now_.size() - 1});
}

void DiskModel::add_change(Change change) {
  EvenCut nothing_lost(true, true);
  if (change.kind == Change::Kind::kName) {
    change_name(change, now_);
  } else {
    change_file(change, nothing_lost, now_);
  }
  changes_.push_back(std::move(change));
}

void DiskModel::apply(const DiskOperation& operation) {
  switch (operation.action) {
    case DiskAction::kMakeFolder:
      add(operation.path, true);
      break;
    case DiskAction::kMakeFile:
      add(operation.path, false);
      break;
    case DiskAction::kWrite:
    case DiskAction::kResize:
      add_change({.kind = operation.action == DiskAction::kWrite ? Change::Kind::kBytes
                                                                 : Change::Kind::kSize,
                  .owner = find(operation.path),
                  .name = {},
                  .offset = operation.offset,
                  .bytes = operation.bytes});
      break;
    case DiskAction::kRename: {
      const auto [folder, name] = place(operation.other);
      const auto [former_folder, former_name] = place(operation.path);
      add_change({.kind = Change::Kind::kName,
                  .owner = folder,
                  .name = name,
                  .child = find(operation.path),
                  .former_owner = former_folder,
                  .former_name = former_name});
      break;
    }
    case DiskAction::kLink: {
      const auto [folder, name] = place(operation.other);
      add_change({.kind = Change::Kind::kName,
                  .owner = folder,
                  .name = name,
                  .child = find(operation.path)});
      break;
    }
    case DiskAction::kRemove: {
      const auto [folder, name] = place(operation.path);
      add_change({.kind = Change::Kind::kName, .owner = folder, .name = name});
      break;
    }
    case DiskAction::kSync:
      sync(find(operation.path));
      break;
    case DiskAction::kMark:
      break;
  }
}

void DiskModel::sync(std::size_t node) {
  for (Change& change : changes_) {
    change.owner_synced |= change.owner == node;
    change.former_owner_synced |= change.former_owner == node;
  }
}

void DiskModel::change_name(const Change& change, Nodes& nodes) {
  if (change.former_owner != kNobody) nodes[change.former_owner].names.erase(change.former_name);
  nodes[change.owner].names.erase(change.name);
  if (change.child != kNobody) nodes[change.owner].names[change.name] = change.child;
}

void DiskModel::change_file(const Change& change, Cut& cut, Nodes& nodes) {
  std::string& file = nodes[change.owner].bytes;
  if (change.kind == Change::Kind::kSize) {
    if (cut.bytes() != Cut::Bytes::kLost) file.resize(change.offset, '\0');
    return;
  }
  const std::string_view bytes = change.bytes;
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t at = change.offset + done;
    const std::string_view block = bytes.substr(done, kBlockBytes - at % kBlockBytes);
    done += block.size();
    switch (cut.bytes()) {
      case Cut::Bytes::kThere:
        put(file, at, block);
        break;
      case Cut::Bytes::kZeros:
        put(file, at, std::string(block.size(), '\0'));
        break;
      case Cut::Bytes::kTorn:
        put(file, at, block.substr(0, block.size() / 2));
        break;
      case Cut::Bytes::kLost:
        break;
    }
  }
}

DiskTree DiskModel::after(Cut& cut) const {
  Nodes nodes = durable_;
  EvenCut nothing_lost(true, true);
  for (const Change& change : changes_) {
    if (change.kind != Change::Kind::kName) {
      change_file(change, change.is_synced() ? static_cast<Cut&>(nothing_lost) : cut, nodes);
    } else if (change.is_synced() || cut.keeps_name()) {
      change_name(change, nodes);
    }
  }
  DiskTree tree;
  const auto list = [&](const auto& self, std::size_t node, const std::string& prefix) -> void {
    for (const auto& [name, child] : nodes[node].names) {
      const bool is_folder = nodes[child].is_folder;
      tree[prefix + name] = is_folder ? std::nullopt : std::optional(nodes[child].bytes);
      self(self, child, prefix + name + "/");
    }
  };
  list(list, 0, "");
  return tree;
}

}  // namespace motley::testing
