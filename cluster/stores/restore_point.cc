#include "cluster/stores/restore_point.h"

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
#include "checkpoint/store/part.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

std::string place_words(const Store& store) {
  if (store.machines.empty() || store.answer.place.is_shared) {
    return store.answer.place.dir.string();
  }
  return fmt::format("{} on {}", store.answer.place.dir.string(), store.machines.front());
}

// "model-00002-of-00003.safetensors (damaged in /home/x/runs/gpt on laptop)"
std::string words_of_missing(const std::string& file, const Stores& stores) {
  std::vector<std::string> damaged;
  for (const auto& [id, store] : stores.by_id) {
    if (is_among(store.answer.damaged, file)) damaged.push_back(place_words(store));
  }
  if (damaged.empty()) return fmt::format("{} is on no machine that answers", file);
  return fmt::format("{} is damaged in {}", file, fmt::join(damaged, " and in "));
}

// Steps of which other folders have a part and which the launcher's folder does not know: those
// newer than all that it knows, or the requested one.
std::set<std::int64_t> unknown_steps(const Stores& stores,
                                     const std::vector<CheckpointInfo>& known,
                                     std::optional<std::int64_t> only) {
  const auto is_wanted = [&](std::int64_t step) {
    if (!only) return known.empty() || step > known.back().step;
    return step == *only && std::ranges::count(known, step, &CheckpointInfo::step) == 0;
  };
  std::set<std::int64_t> steps;
  for (const auto& [id, store] : stores.by_id) {
    std::ranges::copy_if(store.answer.steps, std::inserter(steps, steps.end()), is_wanted);
  }
  return steps;
}

// The step that will be needed, unless a folder has a newer one: the launcher's newest, or the
// requested one. Nothing if its metadata cannot be read here.
std::optional<WantedStep> likely_step(const std::vector<CheckpointInfo>& known,
                                      std::optional<std::int64_t> only) {
  for (auto it = known.rbegin(); it != known.rend(); ++it) {
    if (only && it->step != *only) continue;
    const Result<CheckpointMetadata> texts = read_texts(it->folder);
    return texts.ok() ? std::optional(wanted_of(*texts)) : std::nullopt;
  }
  return {};
}

// By step: why the checkpoint cannot be used, if parts of it exist but no folder has its metadata.
using Untold = std::map<std::int64_t, std::string>;

std::string words_of_damage(const Stores& told) {
  std::vector<std::string> places;
  for (const auto& [id, store] : told.by_id) {
    if (store.answer.untold.empty()) continue;
    places.push_back(fmt::format("{} ({})", place_words(store), store.answer.untold));
  }
  if (places.empty()) return "no machine has its manifest";
  return fmt::format("its manifest is damaged or cannot be read in {}",
                     fmt::join(places, " and in "));
}

// Copies the metadata of these steps to the launcher's folder if another folder has it, replacing
// damaged metadata. Returns the other steps.
Result<Untold> learn(const std::set<std::int64_t>& steps,
                     const fs::path& run_dir,
                     const std::string& launch,
                     const AskStores& ask,
                     const Log& log) {
  Untold untold;
  for (const std::int64_t step : steps) {
    MOTLEY_ASSIGN(const Stores told, ask({.wanted = {}, .texts_of = step}));
    untold[step] = words_of_damage(told);
    for (const auto& [id, store] : told.by_id) {
      if (!store.answer.texts || store.answer.texts->step() != step) continue;
      const bool is_known = has_manifest(checkpoint_folder(run_dir, step));
      const std::string words = fmt::format(
          "{} {} step {}; it is restored from {}", run_dir.string(),
          is_known ? "has a damaged manifest of" : "has no manifest of", step, place_words(store));
      // A lost folder receives all metadata again. In a folder with an older history, which may
      // have been trained further, the restored checkpoint replaces its own.
      list_checkpoints(run_dir).empty() ? log.info(words) : log.warn(words);
      MOTLEY_TRY(adopt_part(run_dir, launch, *store.answer.texts, nullptr));
      untold.erase(step);
      break;
    }
  }
  return untold;
}

// `read`: why its metadata in the launcher's folder cannot be read.
std::string words_of_untold(std::int64_t step, const Untold& untold, const Error& read) {
  const auto reason = untold.find(step);
  const std::string words =
      reason != untold.end() ? reason->second : fmt::format("{}: {}", read.what, read.cause);
  return fmt::format("the checkpoint of step {} cannot be used: {}", step, words);
}

// The checkpoints to resume from, the newest first: those in the launcher's folder, and those
// without metadata.
std::vector<CheckpointInfo> candidates_of(const fs::path& run_dir,
                                          const Untold& untold,
                                          std::optional<std::int64_t> only) {
  std::vector<CheckpointInfo> candidates = list_checkpoints(run_dir);
  for (const auto& [step, reason] : untold) {
    if (std::ranges::count(candidates, step, &CheckpointInfo::step) > 0) continue;
    candidates.push_back({step, checkpoint_folder(run_dir, step)});
  }
  std::erase_if(candidates, [&](const CheckpointInfo& each) { return only && each.step != *only; });
  std::ranges::sort(candidates, std::ranges::greater(), &CheckpointInfo::step);
  return candidates;
}

// Warns of skipped checkpoints, and of their remaining files (prune_to).
void warn_of_passed(const std::vector<std::string>& reasons,
                    const std::vector<std::int64_t>& untold,
                    const Log& log) {
  for (const std::string& reason : reasons) log.warn(reason);
  if (untold.empty()) return;
  log.warn(
      fmt::format("files beside a damaged manifest of step {} are not removed until the run has "
                  "saved that step or a later one",
                  fmt::join(untold, ", ")));
}

}  // namespace

std::map<std::string, std::vector<StoreId>> holders_of(const std::vector<WrittenFile>& files,
                                                       const Stores& stores) {
  std::map<std::string, std::vector<StoreId>> holders;
  for (const WrittenFile& file : files) {
    std::vector<StoreId>& of_file = holders[file.name];
    for (const auto& [id, store] : stores.by_id) {
      if (!store.machines.empty() && is_among(store.answer.whole, file.name)) of_file.push_back(id);
    }
  }
  return holders;
}

Result<std::optional<RestorePoint>> find_restore_point(const fs::path& run_dir,
                                                       const std::string& launch,
                                                       const AskStores& ask,
                                                       const Log& log,
                                                       std::optional<std::int64_t> only) {
  // Each query starts a worker on every machine, so the first one includes the likely step.
  const auto before = list_checkpoints(run_dir);
  const std::optional<WantedStep> likely = likely_step(before, only);
  MOTLEY_ASSIGN(const Stores known, ask({.wanted = likely}));
  MOTLEY_ASSIGN(Untold untold,
                learn(unknown_steps(known, before, only), run_dir, launch, ask, log));
  std::vector<std::string> reasons;
  std::vector<std::int64_t> untold_passed;
  for (const CheckpointInfo& checkpoint : candidates_of(run_dir, untold, only)) {
    Result<CheckpointMetadata> read = read_texts(checkpoint.folder);
    if (!read.ok() && !untold.contains(checkpoint.step)) {
      MOTLEY_ASSIGN(const Untold still, learn({checkpoint.step}, run_dir, launch, ask, log));
      untold.insert(still.begin(), still.end());
      read = read_texts(checkpoint.folder);
    }
    if (!read.ok()) {
      reasons.push_back(words_of_untold(checkpoint.step, untold, read.error()));
      untold_passed.push_back(checkpoint.step);
      continue;
    }
    CheckpointMetadata texts = *std::move(read);
    const WantedStep wanted = wanted_of(texts);
    Stores stores = known;
    if (!likely || likely->step != wanted.step) {
      MOTLEY_ASSIGN(stores, ask({.wanted = wanted}));
    }
    auto holders = holders_of(wanted.files, stores);
    std::vector<std::string> missing;
    for (const auto& [file, where] : holders) {
      if (where.empty()) missing.push_back(words_of_missing(file, stores));
    }
    if (missing.empty()) {
      warn_of_passed(reasons, untold_passed, log);
      return std::optional(RestorePoint{std::move(texts), checkpoint.folder, std::move(holders)});
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
