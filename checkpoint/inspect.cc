#include "checkpoint/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"

namespace motley {
namespace {

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::uint64_t total_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const WrittenFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

// Whether the file exists with its size; does not check its content.
bool lies_in(const std::filesystem::path& folder, const WrittenFile& file) {
  std::error_code code;
  const std::filesystem::path path = folder / file.name;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, code)) &&
         std::filesystem::file_size(path, code) == file.bytes && !code;
}

// The files that one machine wrote into its own run folder.
struct MachineShare {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::size_t files_here = 0;
  std::uint64_t bytes_here = 0;
};

// By machine; empty if all files were written into one folder.
std::map<std::string, MachineShare> machine_shares(const Manifest& manifest,
                                                   const std::filesystem::path& folder) {
  std::map<std::string, MachineShare> shares;
  for (const WrittenFile& file : manifest.files) {
    if (file.machine.empty()) continue;
    MachineShare& share = shares[file.machine];
    ++share.files;
    share.bytes += file.bytes;
    if (!lies_in(folder, file)) continue;
    ++share.files_here;
    share.bytes_here += file.bytes;
  }
  return shares;
}

std::string share_words(const MachineShare& share) {
  const std::string all = fmt::format("{} in {} files", human_bytes(share.bytes), share.files);
  if (share.files_here == share.files) return all + ", all here";
  if (share.files_here == 0) return all + ", none here";
  return fmt::format("{}, {} of them here", all, share.files_here);
}

Json share_to_json(const std::string& machine, const MachineShare& share) {
  return {{"machine", machine},
          {"files", share.files},
          {"bytes", share.bytes},
          {"files_here", share.files_here},
          {"bytes_here", share.bytes_here}};
}

// Every part of a checkpoint has the index, whichever machine has the files.
Result<std::uint64_t> indexed_parameters(const std::filesystem::path& folder) {
  constexpr std::uint64_t kIndexBytesMax = 64 << 20;
  const std::string path = (folder / kIndexName).string();
  MOTLEY_ASSIGN(const std::string text, read_file(path, kIndexBytesMax));
  MOTLEY_ASSIGN(const Json index, parse_json(text, path));
  const bool has_metadata = index.is_object() && index.contains("metadata");
  MOTLEY_ASSIGN(const auto bytes,
                json_get<std::int64_t>(has_metadata ? index["metadata"] : Json::object(),
                                       "total_size", path));
  if (bytes < 0) return damaged_checkpoint(path, "its 'total_size' is negative");
  return static_cast<std::uint64_t>(bytes) / sizeof(float);
}

struct Description {
  Manifest manifest;
  std::uint64_t tensors = 0;     // of parameters
  std::uint64_t parameters = 0;  // single values
  std::map<std::string, MachineShare> machines;
};

Result<Description> describe_checkpoint(const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(Manifest manifest, read_manifest(folder));
  Description description{.manifest = std::move(manifest)};
  description.machines = machine_shares(description.manifest, folder);
  for (const WrittenFile& file : description.manifest.files) {
    if (!is_parameter_file(file.name)) continue;
    description.tensors += file.tensor_hashes.size();
    if (!file.machine.empty()) continue;
    MOTLEY_ASSIGN(const SafetensorsFile tensors, SafetensorsFile::open(folder / file.name));
    for (const auto& [name, entry] : tensors.entries()) {
      description.parameters += (entry.end - entry.begin) / sizeof(float);
    }
  }
  if (!description.machines.empty()) {
    MOTLEY_ASSIGN(description.parameters, indexed_parameters(folder));
  }
  return description;
}

Result<Manifest> verified_manifest(const std::filesystem::path& folder, WorkObserver* watch) {
  MOTLEY_TRY(verify_checkpoint(folder, watch));
  return read_manifest(folder);
}

}  // namespace

std::string format_checkpoint_list(const std::vector<CheckpointInfo>& checkpoints) {
  if (checkpoints.empty()) return "no checkpoints\n";
  std::string text = fmt::format("{:>10}  {:>15}  {:>10}  folder\n", "step", "samples", "size");
  const auto best = best_checkpoint(checkpoints);
  for (const CheckpointInfo& info : checkpoints) {
    const auto manifest = read_manifest(info.folder);
    const bool ok = manifest.ok();
    const bool is_best = best && best->info.step == info.step;
    text += fmt::format("{:>10}  {:>15}  {:>10}  {}{}\n", info.step,
                        ok ? fmt::to_string(manifest->state.samples) : "damaged",
                        ok ? human_bytes(total_bytes(*manifest)) : "damaged", info.folder.string(),
                        is_best ? fmt::format("  best: {}", best_text(best->evaluation)) : "");
  }
  return text;
}

Json checkpoint_list_to_json(const std::vector<CheckpointInfo>& checkpoints) {
  Json list = Json::array();
  const auto best = best_checkpoint(checkpoints);
  for (const CheckpointInfo& info : checkpoints) {
    Json entry = {{"step", info.step}, {"folder", info.folder.string()}};
    const auto manifest = read_manifest(info.folder);
    if (manifest.ok()) {
      entry["tokens"] = manifest->state.tokens;
      entry["bytes"] = total_bytes(*manifest);
    } else {
      entry["error"] = fmt::format("{}: {}", manifest.error().what, manifest.error().cause);
    }
    if (best && best->info.step == info.step) {
      entry["best"] = {{"eval_loss", best->evaluation.loss}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Result<std::string> format_checkpoint(const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(const Description description, describe_checkpoint(folder));
  const auto& [manifest, tensors, parameters, machines] = description;
  const CheckpointState& state = manifest.state;
  std::string text;
  const auto line = [&text](const char* label, const std::string& value) {
    text += fmt::format("{:<15} {}\n", label, value);
  };
  line("checkpoint", folder.string());
  line("step", fmt::format("{} ({} optimizer updates)", state.step, state.optimizer_updates));
  line("model", fmt::format("{}, hash {}", state.model_family, state.model_hash));
  // For images and the like a sample counts as one token.
  const std::string tokens =
      state.tokens == state.samples ? "" : fmt::format(", {} tokens", state.tokens);
  line("data", fmt::format("{} samples{}, seed {}", state.samples, tokens, state.seed));
  line("parameters", fmt::format("{} in {} tensors", parameters, tensors));
  line("parameter hash", manifest.parameter_hash);
  const bool is_mean = state.optimizer == kNoOptimizer;
  line("optimizer",
       is_mean ? "none: a mean of checkpoints, which cannot be resumed" : state.optimizer);
  if (state.gradient_scale) {
    line("gradient scale", fmt::format("{} (fp16)", state.gradient_scale->value));
  }
  if (state.evaluations && state.evaluations->best) {
    line("best so far", best_text(*state.evaluations->best));
  }
  line("plan", state.plan_hash);
  line("size",
       fmt::format("{} in {} files", human_bytes(total_bytes(manifest)), manifest.files.size()));
  for (const auto& [machine, share] : machines) {
    line("written on", fmt::format("{}: {}", machine, share_words(share)));
  }
  for (const WrittenFile& file : manifest.files) {
    text += fmt::format("  {:>10}  {}{}\n", human_bytes(file.bytes), file.name,
                        file.machine.empty() ? ""
                                             : fmt::format("  ({}{})", file.machine,
                                                           lies_in(folder, file) ? ", here" : ""));
  }
  return text;
}

Result<Json> checkpoint_to_json(const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(const Description description, describe_checkpoint(folder));
  const auto& [manifest, tensors, parameters, machines] = description;
  const CheckpointState& state = manifest.state;
  Json files = Json::array();
  for (const WrittenFile& file : manifest.files) {
    Json entry = {{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}};
    if (!file.machine.empty()) {
      entry["machine"] = file.machine;
      entry["here"] = lies_in(folder, file);
    }
    files.push_back(std::move(entry));
  }
  Json json = {{"folder", folder.string()},
               {"step", state.step},
               {"samples", state.samples},
               {"tokens", state.tokens},
               {"optimizer_updates", state.optimizer_updates},
               {"seed", state.seed},
               {"model_family", state.model_family},
               {"model_hash", state.model_hash},
               {"plan_hash", state.plan_hash},
               {"optimizer", state.optimizer},
               {"parameters", parameters},
               {"tensors", tensors},
               {"parameter_hash", manifest.parameter_hash},
               {"bytes", total_bytes(manifest)},
               {"files", std::move(files)}};
  for (const auto& [machine, share] : machines) {
    json["machines"].push_back(share_to_json(machine, share));
  }
  if (state.gradient_scale) {
    json["gradient_scale"] = gradient_scale_to_json(*state.gradient_scale);
  }
  if (state.evaluations) json["evaluations"] = evaluation_record_to_json(*state.evaluations);
  return json;
}

Result<std::string> format_verification(const std::filesystem::path& folder, WorkObserver* watch) {
  MOTLEY_ASSIGN(const Manifest manifest, verified_manifest(folder, watch));
  return fmt::format("{}: intact; {} in {} files, parameter hash {}\n", folder.string(),
                     human_bytes(total_bytes(manifest)), manifest.files.size(),
                     manifest.parameter_hash);
}

Result<Json> verification_to_json(const std::filesystem::path& folder, WorkObserver* watch) {
  MOTLEY_ASSIGN(const Manifest manifest, verified_manifest(folder, watch));
  return Json{{"folder", folder.string()},
              {"whole", true},
              {"files", manifest.files.size()},
              {"bytes", total_bytes(manifest)},
              {"parameter_hash", manifest.parameter_hash}};
}

}  // namespace motley
