#include "tests/cluster/own_folders/machine_cuts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "checkpoint/folders.h"

namespace motley::testing {
namespace {

namespace fs = std::filesystem;

// Higher than all launch numbers in the records.
constexpr const char* kLooking = "000099-0123456789abcdef";

constexpr std::int64_t kEvery = 10;  // steps between saves

Error wrong(std::string cause) {
  return {ErrorCode::kCorrupt, "a launch goes on wrongly", std::move(cause), ""};
}

std::string within_machine(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == path.npos ? "" : path.substr(slash + 1);
}

std::map<std::string, fs::path> paths_of(std::map<std::string, DiskCopy>& disks,
                                         const Layout& layout) {
  std::map<std::string, fs::path> paths;
  for (const std::string& machine : layout.machines()) paths[machine] = disks[machine].path();
  return paths;
}

}  // namespace

std::string machine_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

DiskOperation within_machine(DiskOperation operation) {
  operation.path = within_machine(operation.path);
  operation.other = within_machine(operation.other);
  return operation;
}

DiskTree without_processes(DiskTree tree) {
  for (auto entry = tree.begin(); entry != tree.end();) {
    const bool is_launch = entry->first.find("/launches/") != std::string::npos;
    if (!is_launch) {
      ++entry;
      continue;
    }
    const Result<Json> record = parse_json(entry->second.value_or(""), entry->first);
    // A launcher waits 20 s for an unreadable record to change, and then ignores it.
    if (!record.ok()) {
      entry = tree.erase(entry);
      continue;
    }
    Json gone = *record;
    gone["started"] = 1;
    entry->second = gone.dump();
    ++entry;
  }
  return tree;
}

MachineCuts::Disk MachineCuts::disk_of(DiskTree tree) {
  const std::size_t print = fingerprint(tree, "");
  return {std::move(tree), print};
}

MachineCuts::Disk MachineCuts::as_it_is(const DiskModel& model) {
  EvenCut nothing_lost(true, true);
  return disk_of(model.after(nothing_lost));
}

MachineCuts::MachineCuts(Layout layout, SavedFiles& saved, MachineCutOptions options)
    : layout_(std::move(layout)),
      saved_(saved),
      options_(options),
      machines_(layout_, paths_of(shown_, layout_)) {}

void MachineCuts::run(const DiskTrees& before,
                      const std::vector<DiskOperation>& log,
                      ReportedSaves reported) {
  std::map<std::string, DiskModel> models;
  Disks now;
  for (const std::string& machine : layout_.machines()) {
    const auto tree = before.find(machine);
    models.emplace(machine, tree == before.end() ? DiskTree() : tree->second);
    now[machine] = as_it_is(models.at(machine));
  }
  for (std::size_t i = 0; i < log.size() && tally_.faults.size() < options_.faults_max; ++i) {
    const std::string machine = machine_of(log[i].path);
    if (machine.empty()) {
      reported.hear(log[i].other);
    } else {
      models.at(machine).apply(within_machine(log[i]));
      now[machine] = as_it_is(models.at(machine));
    }
    const bool is_looked_at = machine.empty() || i % options_.place_every == 0;
    if (is_looked_at) look_at(models, now, machine, reported, i + 1);
  }
}

void MachineCuts::look_at(const std::map<std::string, DiskModel>& models,
                          const Disks& now,
                          const std::string& changed,
                          const ReportedSaves& reported,
                          std::size_t position) {
  ++tally_.cuts;
  const std::vector<std::string> all = layout_.machines();
  // If only another machine's disk has changed, a cut of this machine leads to a state that was
  // checked before.
  std::vector<std::vector<std::string>> cut_together = {all};
  for (const std::string& machine : all) {
    if (changed.empty() || changed == machine) cut_together.push_back({machine});
  }
  for (const auto& machines : cut_together) {
    try_cuts(position, options_.kinds, [&](Cut& cut, const std::string& of_cut) {
      Disks disks = now;
      for (const std::string& machine : machines) {
        disks[machine] = disk_of(models.at(machine).after(cut));
      }
      const std::string words =
          fmt::format("after operation {}, {} cut, {}", position, machines, of_cut);
      look_at(disks, "", reported, words);
      if (machines.size() < all.size()) return;
      for (const std::string& lost : all) {
        Disks others = disks;
        others[lost] = {};
        look_at(others, lost, reported, fmt::format("{}, {} lost", words, lost));
      }
    });
  }
}

bool MachineCuts::is_new(const Disks& disks,
                         const std::string& lost,
                         const ReportedSaves& reported) {
  std::string text = reported.text() + (lost.empty() ? "" : "lost");
  for (const auto& [machine, disk] : disks) text += fmt::format(" {}", disk.print);
  return seen_.insert(std::hash<std::string>()(text)).second;
}

void MachineCuts::show(const DiskTrees& trees) {
  for (const auto& [machine, tree] : trees) shown_[machine].show(without_processes(tree));
}

void MachineCuts::look_at(const Disks& disks,
                          const std::string& lost,
                          const ReportedSaves& reported,
                          const std::string& words) {
  if (tally_.faults.size() >= options_.faults_max || !is_new(disks, lost, reported)) return;
  ++tally_.states;
  DiskTrees trees;
  for (const auto& [machine, disk] : disks) trees[machine] = disk.tree;
  show(trees);
  const Resume resume = look_for_resume(trees, !lost.empty(), reported);
  std::string fault = resume.fault;
  const auto is_one_of = [&](std::size_t every) {
    return fault.empty() && resume.is_possible && every > 0 && tally_.states % every == 0;
  };
  if (is_one_of(options_.keep_every)) {
    samples_.push_back({trees, reported});
    samples_.back().reported.go_on_from(resume.step, resume.version);
  }
  if (is_one_of(options_.restart_every)) {
    ++tally_.restarts;
    show(trees);
    fault = fault_of(go_on(resume.version));
    for (auto& [machine, disk] : shown_) disk.forget();
  }
  if (!fault.empty()) {
    tally_.faults.push_back(fmt::format("{}: {} ({})", words, fault, reported.text()));
  }
}

MachineCuts::Resume MachineCuts::look_for_resume(const DiskTrees& trees,
                                                 bool lost,
                                                 const ReportedSaves& reported) {
  StoreInventory stores;
  bool learns = false;
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    learns |= store_query.metadata_of.has_value();
    MOTLEY_ASSIGN(stores, machines_.ask(kLooking, store_query, IfAbsent::kLeave));
    return stores;
  };
  const Log log("", LogLevel::kError);
  const auto found = find_restore_point(machines_.run_dir(kDesk), kLooking, ask, log);
  if (learns) shown_[kDesk].forget();
  if (!found.ok()) {
    // Without a promise, the remaining files may be insufficient.
    const bool is_promised = reported.must_be_found(lost) > 0;
    return {.fault = is_promised ? fault_of(found) : "", .is_possible = false};
  }
  Resume resume{.fault = reported.broken_by(*found, stores, trees, saved_, lost)};
  if (*found) {
    resume.step = (*found)->step_metadata.step();
    resume.version = reported.version_of((*found)->step_metadata, saved_);
  }
  return resume;
}

Result<void> MachineCuts::go_on(const std::optional<int>& version) {
  constexpr int kFirst = 901;
  constexpr int kSecond = 902;
  MOTLEY_ASSIGN(auto launch, PlayedLaunch::prepare(machines_, saved_));
  const std::int64_t step = launch->resumed_step();
  if (version) {
    MOTLEY_ASSIGN(const int read, launch->resumed_version());
    if (read != *version) return wrong(fmt::format("version {} is read, not {}", read, *version));
    MOTLEY_TRY(launch->gather());
    MOTLEY_TRY(verify_checkpoint(checkpoint_folder(machines_.run_dir(kDesk), step)));
  }
  MOTLEY_TRY(launch->start());
  MOTLEY_TRY(launch->save(step + kEvery, kFirst));
  MOTLEY_TRY(launch->await_copies());
  MOTLEY_TRY(launch->save(step + 2 * kEvery, kSecond));
  MOTLEY_TRY(launch->finish());
  launch.reset();
  return check_what_is_left(step + 2 * kEvery);
}

Result<void> MachineCuts::check_what_is_left(std::int64_t last_step) const {
  StoreInventory stores;
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    MOTLEY_ASSIGN(stores, machines_.ask(kLooking, store_query, IfAbsent::kLeave));
    return stores;
  };
  const Log log("", LogLevel::kError);
  MOTLEY_ASSIGN(const auto found, find_restore_point(machines_.run_dir(kDesk), kLooking, ask, log));
  if (!found || found->step_metadata.step() != last_step)
    return wrong("its last save is not found");
  const std::size_t least = layout_.copies() > 0 ? 2 : 1;
  for (const auto& [file, locations] : found->locations) {
    if (locations.size() < least) return wrong(fmt::format("{} has no copy", file));
  }
  // Files of later steps remain until those steps are saved again.
  const auto is_of_later = [&](const std::string& text) {
    const auto name = parse_folder_name(text);
    return name && name->step > last_step;
  };
  const std::vector<std::string> expected = {fmt::format("step-{:06}", last_step - kEvery),
                                             fmt::format("step-{:06}", last_step)};
  for (const std::string& machine : layout_.machines()) {
    std::vector<std::string> left = names_in(checkpoints_root(machines_.run_dir(machine)));
    std::erase_if(left, is_of_later);
    if (left != expected) return wrong(fmt::format("on {} it leaves {}", machine, left));
  }
  return {};
}

}  // namespace motley::testing
