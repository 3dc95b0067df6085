#include "cluster/replication/restore_point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/replication/shard_set.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

std::string location_text(const MachineStore& store) {
  if (store.machines.empty() || store.contents.location.is_shared) {
    return store.contents.location.dir.string();
  }
  return fmt::format("{} on {}", store.contents.location.dir.string(), store.machines.front());
}

// "model-00002-of-00003.safetensors (damaged in /home/x/runs/gpt on laptop)"
std::string words_of_missing(const std::string& file, const StoreInventory& stores) {
  std::vector<std::string> damaged;
  for (const auto& [id, store] : stores.by_id) {
    if (is_among(store.contents.damaged, file)) damaged.push_back(location_text(store));
  }
  if (damaged.empty()) return fmt::format("{} is on no machine that answers", file);
  return fmt::format("{} is damaged in {}", file, fmt::join(damaged, " and in "));
}

// Steps of which other folders have a part and which the launcher's folder does not know: those
// newer than all that it knows, or the requested one.
std::set<std::int64_t> unknown_steps(const StoreInventory& stores,
                                     const std::vector<CheckpointInfo>& known,
                                     std::optional<std::int64_t> only) {
  const auto is_wanted = [&](std::int64_t step) {
    if (!only) return known.empty() || step > known.back().step;
    return step == *only && std::ranges::count(known, step, &CheckpointInfo::step) == 0;
  };
  std::set<std::int64_t> steps;
  for (const auto& [id, store] : stores.by_id) {
    std::ranges::copy_if(store.contents.steps, std::inserter(steps, steps.end()), is_wanted);
  }
  return steps;
}

// The step that will be needed, unless a folder has a newer one: the launcher's newest, or the
// requested one. Nothing if its metadata cannot be read here.
std::optional<WantedStep> likely_step(const std::vector<CheckpointInfo>& known,
                                      std::optional<std::int64_t> only) {
  for (auto it = known.rbegin(); it != known.rend(); ++it) {
    if (only && it->step != *only) continue;
    const Result<CheckpointMetadata> step_metadata = read_metadata(it->folder);
    return step_metadata.ok() ? std::optional(wanted_step(*step_metadata)) : std::nullopt;
  }
  return {};
}

// By step: why the checkpoint cannot be used, if parts of it exist but no folder has its metadata.
using MetadataErrors = std::map<std::int64_t, std::string>;

std::string damaged_manifest_text(const StoreInventory& inventory) {
  std::vector<std::string> places;
  for (const auto& [id, store] : inventory.by_id) {
    if (store.contents.metadata_error.empty()) continue;
    places.push_back(fmt::format("{} ({})", location_text(store), store.contents.metadata_error));
  }
  if (places.empty()) return "no machine has its manifest";
  return fmt::format("its manifest is damaged or cannot be read in {}",
                     fmt::join(places, " and in "));
}

// Copies the metadata of these steps to the launcher's folder if another folder has it, replacing
// damaged metadata. Returns the other steps.
Result<MetadataErrors> fetch_metadata(const std::set<std::int64_t>& steps,
                                      const fs::path& run_dir,
                                      const std::string& launch,
                                      const QueryStores& ask,
                                      const Log& log) {
  MetadataErrors metadata_errors;
  for (const std::int64_t step : steps) {
    MOTLEY_ASSIGN(const StoreInventory inventory, ask({.wanted = {}, .metadata_of = step}));
    metadata_errors[step] = damaged_manifest_text(inventory);
    for (const auto& [id, store] : inventory.by_id) {
      if (!store.contents.step_metadata || store.contents.step_metadata->step() != step) continue;
      const bool is_known = has_manifest(checkpoint_folder(run_dir, step));
      const std::string words =
          fmt::format("{} {} step {}; it is restored from {}", run_dir.string(),
                      is_known ? "has a damaged manifest of" : "has no manifest of", step,
                      location_text(store));
      // A lost folder receives all metadata again. In a folder with an older history, which may
      // have been trained further, the restored checkpoint replaces its own.
      list_checkpoints(run_dir).empty() ? log.info(words) : log.warn(words);
      MOTLEY_TRY(adopt_shards(run_dir, launch, *store.contents.step_metadata, nullptr));
      metadata_errors.erase(step);
      break;
    }
  }
  return metadata_errors;
}

// `read`: why its metadata in the launcher's folder cannot be read.
std::string unusable_text(std::int64_t step,
                          const MetadataErrors& metadata_errors,
                          const Error& read) {
  const auto reason = metadata_errors.find(step);
  const std::string words = reason != metadata_errors.end()
                                ? reason->second
                                : fmt::format("{}: {}", read.what, read.cause);
  return fmt::format("the checkpoint of step {} cannot be used: {}", step, words);
}

// The checkpoints to resume from, the newest first: those in the launcher's folder, and those
// without metadata.
std::vector<CheckpointInfo> candidates_of(const fs::path& run_dir,
                                          const MetadataErrors& metadata_errors,
                                          std::optional<std::int64_t> only) {
  std::vector<CheckpointInfo> candidates = list_checkpoints(run_dir);
  for (const auto& [step, reason] : metadata_errors) {
    if (std::ranges::count(candidates, step, &CheckpointInfo::step) > 0) continue;
    candidates.push_back({step, checkpoint_folder(run_dir, step)});
  }
  std::erase_if(candidates, [&](const CheckpointInfo& each) { return only && each.step != *only; });
  std::ranges::sort(candidates, std::ranges::greater(), &CheckpointInfo::step);
  return candidates;
}

// Warns of skipped checkpoints, and of their remaining files (prune_to).
void warn_of_passed(const std::vector<std::string>& reasons,
                    const std::vector<std::int64_t>& metadata_errors,
                    const Log& log) {
  for (const std::string& reason : reasons) log.warn(reason);
  if (metadata_errors.empty()) return;
  log.warn(
      fmt::format("files beside a damaged manifest of step {} are not removed until the run has "
                  "saved that step or a later one",
                  fmt::join(metadata_errors, ", ")));
}

}  // namespace

std::map<std::string, std::vector<StoreId>> locations_of(const std::vector<WrittenFile>& files,
                                                         const StoreInventory& stores) {
  std::map<std::string, std::vector<StoreId>> locations;
  for (const WrittenFile& file : files) {
    std::vector<StoreId>& of_file = locations[file.name];
    for (const auto& [id, store] : stores.by_id) {
      if (!store.machines.empty() && is_among(store.contents.intact, file.name))
        of_file.push_back(id);
    }
  }
  return locations;
}

Result<std::optional<RestorePoint>> find_restore_point(const fs::path& run_dir,
                                                       const std::string& launch,
                                                       const QueryStores& ask,
                                                       const Log& log,
                                                       std::optional<std::int64_t> only) {
  // Each query starts a worker on every machine, so the first one includes the likely step.
  const auto before = list_checkpoints(run_dir);
  const std::optional<WantedStep> likely = likely_step(before, only);
  MOTLEY_ASSIGN(const StoreInventory known, ask({.wanted = likely}));
  MOTLEY_ASSIGN(MetadataErrors metadata_errors,
                fetch_metadata(unknown_steps(known, before, only), run_dir, launch, ask, log));
  std::vector<std::string> reasons;
  std::vector<std::int64_t> skipped_steps;
  for (const CheckpointInfo& checkpoint : candidates_of(run_dir, metadata_errors, only)) {
    Result<CheckpointMetadata> read = read_metadata(checkpoint.folder);
    if (!read.ok() && !metadata_errors.contains(checkpoint.step)) {
      MOTLEY_ASSIGN(const MetadataErrors still,
                    fetch_metadata({checkpoint.step}, run_dir, launch, ask, log));
      metadata_errors.insert(still.begin(), still.end());
      read = read_metadata(checkpoint.folder);
    }
    if (!read.ok()) {
      reasons.push_back(unusable_text(checkpoint.step, metadata_errors, read.error()));
      skipped_steps.push_back(checkpoint.step);
      continue;
    }
    CheckpointMetadata step_metadata = *std::move(read);
    const WantedStep wanted = wanted_step(step_metadata);
    StoreInventory stores = known;
    if (!likely || likely->step != wanted.step) {
      MOTLEY_ASSIGN(stores, ask({.wanted = wanted}));
    }
    auto locations = locations_of(wanted.files, stores);
    std::vector<std::string> missing;
    for (const auto& [file, where] : locations) {
      if (where.empty()) missing.push_back(words_of_missing(file, stores));
    }
    if (missing.empty()) {
      warn_of_passed(reasons, skipped_steps, log);
      return std::optional(
          RestorePoint{std::move(step_metadata), checkpoint.folder, std::move(locations)});
    }
    reasons.push_back(fmt::format("the checkpoint of step {} cannot be used: {}", checkpoint.step,
                                  fmt::join(missing, "; ")));
  }
  if (reasons.empty()) return std::optional<RestorePoint>();
  return Error{ErrorCode::kCorrupt,
               fmt::format("no checkpoint of {} can be used", run_dir.string()),
               fmt::format("{}", fmt::join(reasons, ". ")),
               "switch on or reconnect the machines that have these files, or copy the files back; "
               "a new run starts without --resume in another folder"};
}

}  // namespace motley
