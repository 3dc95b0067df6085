#include "cluster/stores/restore_point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint.h"
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
  if (damaged.empty()) return fmt::format("{} is on none of the machines that answer", file);
  return fmt::format("{} is damaged in {}", file, fmt::join(damaged, " and in "));
}

// Steps that other folders have a part of and that are newer than all that the launcher's knows.
std::set<std::int64_t> newer_steps(const Stores& stores, const std::vector<CheckpointInfo>& known) {
  std::set<std::int64_t> steps;
  for (const auto& [id, store] : stores.by_id) {
    for (const std::int64_t step : store.answer.steps) {
      if (known.empty() || step > known.back().step) steps.insert(step);
    }
  }
  return steps;
}

// The launcher's folder gets the texts of those steps that another folder can tell.
Result<void> learn(const std::set<std::int64_t>& steps,
                   const fs::path& run_dir,
                   const std::string& launch,
                   const AskStores& ask,
                   const Log& log) {
  for (const std::int64_t step : steps) {
    MOTLEY_ASSIGN(const Stores told, ask({.wanted = {}, .texts_of = step}));
    for (const auto& [id, store] : told.by_id) {
      if (!store.answer.texts || store.answer.texts->step() != step) continue;
      log.info(fmt::format("{} does not know of step {}; {} does", run_dir.string(), step,
                           place_words(store)));
      MOTLEY_TRY(adopt_part(run_dir, launch, *store.answer.texts, nullptr));
      break;
    }
  }
  return {};
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
                                                       const Log& log) {
  MOTLEY_ASSIGN(const Stores known, ask({}));
  MOTLEY_TRY(learn(newer_steps(known, list_checkpoints(run_dir)), run_dir, launch, ask, log));
  std::vector<CheckpointInfo> checkpoints = list_checkpoints(run_dir);
  std::ranges::reverse(checkpoints);
  std::vector<std::string> reasons;
  for (const CheckpointInfo& checkpoint : checkpoints) {
    Result<CheckpointTexts> read = read_texts(checkpoint.folder);
    if (!read.ok()) {
      reasons.push_back(fmt::format("the checkpoint of step {} cannot be used: {}: {}",
                                    checkpoint.step, read.error().what, read.error().cause));
      continue;
    }
    CheckpointTexts texts = *std::move(read);
    std::vector<WrittenFile> files = tensor_files(texts.manifest);
    for (WrittenFile& file : files) file.tensor_hashes.clear();
    MOTLEY_ASSIGN(const Stores stores, ask({.wanted = WantedStep{checkpoint.step, files}}));
    auto holders = holders_of(files, stores);
    std::vector<std::string> missing;
    for (const auto& [file, where] : holders) {
      if (where.empty()) missing.push_back(words_of_missing(file, stores));
    }
    if (missing.empty()) {
      for (const std::string& reason : reasons) log.warn(reason);
      return std::optional(RestorePoint{std::move(texts), checkpoint.folder, std::move(holders)});
    }
    reasons.push_back(fmt::format("the checkpoint of step {} cannot be used: {}", checkpoint.step,
                                  fmt::join(missing, "; ")));
  }
  if (reasons.empty()) return std::optional<RestorePoint>();
  return Error{ErrorCode::kCorrupt,
               fmt::format("no checkpoint of {} can be used", run_dir.string()),
               fmt::format("{}", fmt::join(reasons, ". ")),
               "switch on or put back the machines that have these files, or copy the files back; "
               "a new run starts without --resume in another folder"};
}

}  // namespace motley
