// Makes a committed checkpoint from the shards of all ranks. The order of the file operations is
// the protocol; docs/formats/checkpoint.md has the reason for each.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/publish.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Error cannot_commit(const fs::path& folder, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("cannot commit the checkpoint, {}", folder.string()),
          std::move(cause), "earlier checkpoints remain; resume from the newest of them"};
}

// Checks that each rank occurs once, with the file names that its rank must use.
std::optional<std::string> shards_fault(const std::vector<Shard>& shards) {
  const int rank_count = static_cast<int>(shards.size());
  if (shards.empty()) return "no rank has reported a shard";
  std::set<int> ranks;
  for (const Shard& shard : shards) {
    if (shard.rank < 0 || shard.rank >= rank_count) {
      return fmt::format("rank {} has reported among {} ranks", shard.rank, rank_count);
    }
    if (!ranks.insert(shard.rank).second) {
      return fmt::format("rank {} has reported twice", shard.rank);
    }
    for (const auto& [part, file] :
         {std::pair("model", &shard.model), std::pair("optimizer", &shard.optimizer)}) {
      const std::string expected = shard_file_name(part, shard.rank, rank_count);
      if (file->name != expected) {
        return fmt::format("rank {} reports the file '{}' in place of '{}'", shard.rank, file->name,
                           expected);
      }
    }
  }
  return {};
}

// Compares size and header of the reported file with the file in the folder; returns the bytes of
// its data. verify_checkpoint checks the content: reading it back here would double the stall.
Result<std::uint64_t> check_file(const fs::path& folder, const WrittenFile& reported) {
  const fs::path path = folder / reported.name;
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.bytes() != reported.bytes) {
    return cannot_commit(folder, fmt::format("{} has {} bytes; {} were written", reported.name,
                                             file.bytes(), reported.bytes));
  }
  MOTLEY_ASSIGN(const SafetensorsFile tensors, SafetensorsFile::open(path));
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!std::equal(tensors.entries().begin(), tensors.entries().end(),
                  reported.tensor_hashes.begin(), reported.tensor_hashes.end(), same_name)) {
    return cannot_commit(folder,
                         fmt::format("{} does not contain the written tensors", reported.name));
  }
  std::uint64_t data_bytes = 0;
  for (const auto& [name, entry] : tensors.entries()) data_bytes += entry.end - entry.begin;
  return data_bytes;
}

struct Contents {
  std::uint64_t parameter_bytes = 0;
  std::map<std::string, std::string> parameter_files;   // by parameter
  std::map<std::string, std::string> parameter_hashes;  // by parameter
};

Result<Contents> check_parameters(const fs::path& folder,
                                  const std::vector<Shard>& shards,
                                  const RemoteShards& elsewhere) {
  Contents contents;
  for (const Shard& shard : shards) {
    if (!elsewhere.ranks.contains(shard.rank)) {
      MOTLEY_ASSIGN(const std::uint64_t bytes, check_file(folder, shard.model));
      contents.parameter_bytes += bytes;
    }
    for (const auto& [name, hash] : shard.model.tensor_hashes) {
      const auto [it, is_new] = contents.parameter_files.emplace(name, shard.model.name);
      if (!is_new) {
        return cannot_commit(folder, fmt::format("parameter '{}' is in {} and in {}", name,
                                                 it->second, shard.model.name));
      }
      contents.parameter_hashes.emplace(name, hash);
    }
  }
  if (!elsewhere.ranks.empty()) contents.parameter_bytes = elsewhere.parameter_bytes;
  return contents;
}

Result<void> check_moments(const fs::path& folder,
                           const std::vector<Shard>& shards,
                           const RemoteShards& elsewhere,
                           const Contents& contents) {
  std::map<std::string, std::string> files;  // by moment
  for (const Shard& shard : shards) {
    if (!elsewhere.ranks.contains(shard.rank)) MOTLEY_TRY(check_file(folder, shard.optimizer));
    for (const auto& [name, hash] : shard.optimizer.tensor_hashes) {
      const auto [it, is_new] = files.emplace(name, shard.optimizer.name);
      if (!is_new) {
        return cannot_commit(folder, fmt::format("moment '{}' is in {} and in {}", name, it->second,
                                                 shard.optimizer.name));
      }
      const std::size_t slash = name.find('/');
      if (slash == name.npos || !contents.parameter_files.contains(name.substr(slash + 1))) {
        return cannot_commit(folder, fmt::format("moment '{}' belongs to no parameter", name));
      }
    }
  }
  return {};
}

}  // namespace

Result<fs::path> commit_checkpoint(const fs::path& run_dir,
                                   const std::string& launch,
                                   const CheckpointState& state,
                                   const std::vector<Shard>& shards,
                                   const Json& config,
                                   const Json& hf_config,
                                   const RemoteShards& elsewhere) {
  MOTLEY_CHECK(state.step >= 0, "step {}", state.step);
  const SaveLocation location{run_dir, launch, state.step};
  const fs::path partial = partial_folder(location);
  if (const auto fault = shards_fault(shards)) return cannot_commit(partial, *fault);
  MOTLEY_ASSIGN(const Contents contents, check_parameters(partial, shards, elsewhere));
  MOTLEY_TRY(check_moments(partial, shards, elsewhere, contents));

  Manifest manifest{.state = state,
                    .parameter_hash = parameter_hash(contents.parameter_hashes),
                    .config = config};
  std::set<std::string> names;
  for (const Shard& shard : shards) {
    for (const WrittenFile* file : {&shard.model, &shard.optimizer}) {
      names.insert(file->name);
      manifest.files.push_back(*file);
    }
  }
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const WrittenFile& a, const WrittenFile& b) { return a.name < b.name; });
  MOTLEY_TRY(make_folders(partial));
  MOTLEY_TRY(remove_all_but(partial, names));

  const Json index = weights_index(contents.parameter_files, contents.parameter_bytes);
  MOTLEY_ASSIGN(WrittenFile index_file, write_json_file(partial, kIndexName, index));
  manifest.files.push_back(std::move(index_file));
  if (!hf_config.is_null()) {
    MOTLEY_ASSIGN(WrittenFile config_file, write_json_file(partial, kModelConfigName, hf_config));
    manifest.files.push_back(std::move(config_file));
  }
  // This also syncs the folder, and with it the names of all files above.
  MOTLEY_TRY(write_file_atomic(partial / kManifestName, format_manifest(manifest)));

  MOTLEY_TRY(publish_partial(location));
  return checkpoint_folder(run_dir, state.step);
}

}  // namespace motley
