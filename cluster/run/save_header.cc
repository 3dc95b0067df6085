#include "cluster/run/save_header.h"

#include <cstdint>
#include <utility>

#include "checkpoint/manifest.h"
#include "checkpoint/save/sealed_json.h"

namespace motley {
namespace {

std::filesystem::path header_path(const std::filesystem::path& run_dir) {
  return run_dir / "launch.json";
}

Result<Json> get_array(const Json& json, const char* key, const std::string& source) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_array()) return *found;
  return damaged_checkpoint(source, std::string("key '") + key + "' is missing or not an array");
}

CheckpointState with_progress(CheckpointState state, const CheckpointState& progress) {
  state.step = progress.step;
  state.samples = progress.samples;
  state.tokens = progress.tokens;
  state.optimizer_updates = progress.optimizer_updates;
  state.gradient_scale = progress.gradient_scale;
  state.evaluations = progress.evaluations;
  state.round_tokens = progress.round_tokens;
  return state;
}

}  // namespace

Result<void> write_save_header(const std::filesystem::path& run_dir, const SaveHeader& header) {
  const Manifest base{
      .state = header.common, .parameter_hash = parameter_hash({}), .config = header.config};
  return write_sealed_json(header_path(run_dir),
                           {{"launch", header.launch},
                            {"manifest", format_manifest(base)},
                            {"model_config", header.model_config},
                            {"machines", header.machines},
                            {"elsewhere", header.elsewhere.ranks},
                            {"parameter_bytes", header.elsewhere.parameter_bytes}});
}

Result<SaveHeader> read_save_header(const std::filesystem::path& run_dir) {
  const std::string source = header_path(run_dir).string();
  MOTLEY_ASSIGN(const Json json, read_sealed_json(source));
  SaveHeader header;
  MOTLEY_ASSIGN(header.launch, json_get<std::string>(json, "launch", source));
  MOTLEY_ASSIGN(const std::string text, json_get<std::string>(json, "manifest", source));
  MOTLEY_ASSIGN(Manifest base, parse_manifest(text, source));
  header.common = std::move(base.state);
  header.config = std::move(base.config);
  header.model_config = json.value("model_config", Json());
  MOTLEY_ASSIGN(const Json machines, get_array(json, "machines", source));
  for (const Json& machine : machines) {
    MOTLEY_ASSIGN(header.machines.emplace_back(),
                  json_get<std::string>({{"machine", machine}}, "machine", source));
  }
  MOTLEY_ASSIGN(const Json elsewhere, get_array(json, "elsewhere", source));
  for (const Json& rank : elsewhere) {
    MOTLEY_ASSIGN(const auto number, json_get<std::int64_t>({{"rank", rank}}, "rank", source));
    header.elsewhere.ranks.insert(static_cast<int>(number));
  }
  MOTLEY_ASSIGN(const auto bytes, json_get<std::int64_t>(json, "parameter_bytes", source));
  header.elsewhere.parameter_bytes = static_cast<std::uint64_t>(bytes);
  return header;
}

bool has_same_progress(const CheckpointState& a, const CheckpointState& b) {
  return a.step == b.step && a.samples == b.samples && a.tokens == b.tokens &&
         a.optimizer_updates == b.optimizer_updates && a.gradient_scale == b.gradient_scale &&
         a.evaluations == b.evaluations && a.round_tokens == b.round_tokens;
}

Result<std::filesystem::path> commit_save(const std::filesystem::path& run_dir,
                                          const SaveHeader& header,
                                          const CheckpointState& progress,
                                          const std::map<int, Shard>& shards) {
  std::vector<Shard> all;
  for (auto [rank, shard] : shards) {
    // If all ranks write to one folder, the manifest need not name their machines.
    if (!header.elsewhere.ranks.empty()) {
      shard.model.machine = header.machines.at(static_cast<std::size_t>(rank));
      shard.optimizer.machine = shard.model.machine;
    }
    all.push_back(std::move(shard));
  }
  return commit_checkpoint(run_dir, header.launch, with_progress(header.common, progress), all,
                           header.config, header.model_config, header.elsewhere);
}

}  // namespace motley
