#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/system/files.h"
#include "base/system/shell_word.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"

namespace motley {
namespace {

constexpr const char* kFormat = "motley.checkpoint";
constexpr std::string_view kHashKey = ",\n  \"hash\": \"";
constexpr std::string_view kHashEnd = "\"\n}\n";
constexpr std::size_t kHashDigits = 32;
constexpr int kOldestVersion = 1;
constexpr std::size_t kWordsBytesMax = 256;
constexpr std::uint64_t kManifestBytesMax = 64ULL << 20;

bool is_hash(const std::string& text) {
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<std::int64_t> get_count(const Json& json, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(const std::int64_t count, json_get<std::int64_t>(json, key, source));
  if (count < 0) return damaged_checkpoint(source, fmt::format("key '{}' is negative", key));
  return count;
}

Result<std::string> get_hash(const Json& json, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(std::string hash, json_get<std::string>(json, key, source));
  if (!is_hash(hash)) return damaged_checkpoint(source, fmt::format("key '{}' is not a hash", key));
  return hash;
}

// Text that is printed unchanged, so it must not contain terminal control sequences.
Result<std::string> get_words(const Json& json, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(std::string words, json_get<std::string>(json, key, source));
  if (excerpt(words, kWordsBytesMax) == words) return words;
  return damaged_checkpoint(source,
                            fmt::format("key '{}' is too long or has control characters", key));
}

Json data_to_json(const DataFingerprint& data) {
  return {
      {"kind", data.kind}, {"bytes", data.bytes}, {"hash", data.hash}, {"holdout", data.holdout}};
}

Result<DataFingerprint> data_from_json(const Json& json, const std::string& source) {
  DataFingerprint data;
  MOTLEY_ASSIGN(data.kind, get_words(json, "kind", source));
  MOTLEY_ASSIGN(data.bytes, get_count(json, "bytes", source));
  MOTLEY_ASSIGN(data.hash, get_hash(json, "hash", source));
  MOTLEY_ASSIGN(data.holdout, json_get<double>(json, "holdout", source));
  return data;
}

Json plan_to_json(const PlanFingerprint& plan) {
  return {{"micro_batch", plan.micro_batch},
          {"codecs", plan.codecs},
          {"gradient_codec", plan.gradient_codec},
          {"replicas", plan.replicas}};
}

Result<PlanFingerprint> plan_from_json(const Json& json, const std::string& source) {
  const auto list = [&](const char* key) -> Result<Json> {
    const auto found = json.find(key);
    if (found != json.end() && found->is_array()) return *found;
    return damaged_checkpoint(source, fmt::format("key '{}' is missing or not an array", key));
  };
  const auto get_int = [&](const Json& object, const char* key) -> Result<int> {
    MOTLEY_ASSIGN(const std::int64_t count, get_count(object, key, source));
    if (!std::in_range<int>(count)) {
      return damaged_checkpoint(source, fmt::format("key '{}' is {}", key, count));
    }
    return static_cast<int>(count);
  };
  PlanFingerprint plan;
  MOTLEY_ASSIGN(plan.micro_batch, get_int(json, "micro_batch"));
  MOTLEY_ASSIGN(plan.gradient_codec, get_words(json, "gradient_codec", source));
  MOTLEY_ASSIGN(const Json codecs, list("codecs"));
  for (const Json& codec : codecs) {
    MOTLEY_ASSIGN(plan.codecs.emplace_back(), get_words({{"codecs", codec}}, "codecs", source));
  }
  MOTLEY_ASSIGN(const Json replicas, list("replicas"));
  for (const Json& count : replicas) {
    MOTLEY_ASSIGN(const int value, get_int({{"replicas", count}}, "replicas"));
    plan.replicas.push_back(value);
  }
  return plan;
}

Result<CheckpointState> state_from_json(const Json& json, const std::string& source) {
  CheckpointState state;
  MOTLEY_ASSIGN(state.step, get_count(json, "step", source));
  MOTLEY_ASSIGN(state.samples, get_count(json, "samples", source));
  MOTLEY_ASSIGN(state.tokens, get_count(json, "tokens", source));
  MOTLEY_ASSIGN(state.optimizer_updates, get_count(json, "optimizer_updates", source));
  MOTLEY_ASSIGN(state.seed, json_get<std::int64_t>(json, "seed", source));
  MOTLEY_ASSIGN(state.model_hash, get_words(json, "model_hash", source));
  MOTLEY_ASSIGN(state.model_family, get_words(json, "model_family", source));
  MOTLEY_ASSIGN(state.plan_hash, get_words(json, "plan_hash", source));
  MOTLEY_ASSIGN(state.optimizer, get_words(json, "optimizer", source));
  if (json.contains("data")) {
    MOTLEY_ASSIGN(state.data, data_from_json(json["data"], source));
  }
  if (json.contains("plan")) {
    MOTLEY_ASSIGN(state.plan, plan_from_json(json["plan"], source));
  }
  if (json.contains("gradient_scale")) {
    MOTLEY_ASSIGN(state.gradient_scale, gradient_scale_from_json(json["gradient_scale"], source));
  }
  if (json.contains("evaluations")) {
    MOTLEY_ASSIGN(state.evaluations, evaluation_record_from_json(json["evaluations"], source));
  }
  MOTLEY_ASSIGN(state.round_tokens, round_tokens_from_json(json, source));
  return state;
}

}  // namespace

Error damaged_checkpoint(const std::string& source, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("damaged checkpoint, {}", source), std::move(cause),
          "use an earlier checkpoint, or copy this one again"};
}

std::string parameter_hash(const std::map<std::string, std::string>& tensor_hashes) {
  Hasher128 hasher;
  for (const auto& [name, hash] : tensor_hashes) {
    hasher.add(fmt::format("{} {}\n", hash, name));
  }
  return hasher.hex();
}

Result<std::vector<double>> round_tokens_from_json(const Json& json, const std::string& source) {
  std::vector<double> tokens;
  const auto list = json.find("round_tokens");
  if (list == json.end()) return tokens;
  for (const Json& each : *list) {
    MOTLEY_ASSIGN(const double count,
                  json_get<double>({{"round_tokens", each}}, "round_tokens", source));
    if (!(count >= 0)) return damaged_checkpoint(source, "key 'round_tokens' has a negative count");
    tokens.push_back(count);
  }
  return tokens;
}

Json written_file_to_json(const WrittenFile& file) {
  Json tensors = Json::array();
  for (const auto& [name, hash] : file.tensor_hashes) {
    tensors.push_back({{"name", name}, {"hash", hash}});
  }
  Json json = {
      {"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}, {"tensors", tensors}};
  if (!file.machine.empty()) json["machine"] = file.machine;
  return json;
}

Result<WrittenFile> written_file_from_json(const Json& json, const std::string& source) {
  WrittenFile file;
  MOTLEY_ASSIGN(file.name, json_get<std::string>(json, "name", source));
  if (!is_plain_name(file.name)) {
    return damaged_checkpoint(source, "the name of a file is empty, hidden or leaves its folder");
  }
  MOTLEY_ASSIGN(file.bytes, get_count(json, "bytes", source));
  MOTLEY_ASSIGN(file.hash, get_hash(json, "hash", source));
  if (json.contains("machine")) {
    MOTLEY_ASSIGN(file.machine, get_words(json, "machine", source));
  }
  const auto tensors = json.find("tensors");
  if (tensors == json.end() || !tensors->is_array()) {
    return damaged_checkpoint(source, "key 'tensors' is missing or not an array");
  }
  for (const Json& tensor : *tensors) {
    MOTLEY_ASSIGN(std::string name, json_get<std::string>(tensor, "name", source));
    if (excerpt(name, name.size()) != name) {
      return damaged_checkpoint(source, "the name of a tensor has control characters");
    }
    MOTLEY_ASSIGN(std::string hash, get_hash(tensor, "hash", source));
    if (!file.tensor_hashes.emplace(name, std::move(hash)).second) {
      return damaged_checkpoint(source, fmt::format("duplicate tensor '{}'", excerpt(name)));
    }
  }
  return file;
}

std::string format_manifest(const Manifest& manifest) {
  const CheckpointState& state = manifest.state;
  Json files = Json::array();
  for (const WrittenFile& file : manifest.files) files.push_back(written_file_to_json(file));
  Json json = {{"format", kFormat},
               {"version", kManifestVersion},
               {"step", state.step},
               {"samples", state.samples},
               {"tokens", state.tokens},
               {"optimizer_updates", state.optimizer_updates},
               {"seed", state.seed},
               {"model_hash", state.model_hash},
               {"model_family", state.model_family},
               {"plan_hash", state.plan_hash},
               {"optimizer", state.optimizer},
               {"parameter_hash", manifest.parameter_hash},
               {"files", std::move(files)},
               {"config", manifest.config}};
  if (state.data) json["data"] = data_to_json(*state.data);
  if (state.plan) json["plan"] = plan_to_json(*state.plan);
  if (state.gradient_scale) {
    json["gradient_scale"] = gradient_scale_to_json(*state.gradient_scale);
  }
  if (state.evaluations) json["evaluations"] = evaluation_record_to_json(*state.evaluations);
  if (!state.round_tokens.empty()) json["round_tokens"] = state.round_tokens;
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // without the closing "\n}"
  const std::string hash = hash128_hex(std::as_bytes(std::span(text)));
  return text.append(kHashKey).append(hash).append(kHashEnd);
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  // Format and version are checked first: a newer version may have its hash elsewhere.
  MOTLEY_ASSIGN(const std::string format, json_get<std::string>(json, "format", source));
  if (format != kFormat) return damaged_checkpoint(source, "key 'format' is not motley.checkpoint");
  MOTLEY_ASSIGN(const std::int64_t version, json_get<std::int64_t>(json, "version", source));
  if (version < kOldestVersion || version > kManifestVersion) {
    return Error{ErrorCode::kCorrupt, fmt::format("unknown checkpoint version, {}", source),
                 fmt::format("its version is {}; this program reads versions {} to {}", version,
                             kOldestVersion, kManifestVersion),
                 "read it with the version of Motley that wrote it"};
  }
  const std::size_t tail = kHashKey.size() + kHashDigits + kHashEnd.size();
  const std::string_view body = text.substr(0, text.size() - std::min(tail, text.size()));
  const std::string hash = hash128_hex(std::as_bytes(std::span(body)));
  if (text.substr(body.size()) != fmt::format("{}{}{}", kHashKey, hash, kHashEnd)) {
    return damaged_checkpoint(source, "its own hash does not match");
  }

  Manifest manifest;
  MOTLEY_ASSIGN(manifest.state, state_from_json(json, source));
  MOTLEY_ASSIGN(manifest.parameter_hash, get_hash(json, "parameter_hash", source));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) {
    return damaged_checkpoint(source, "key 'files' is missing or not an array");
  }
  std::set<std::string> names = {kManifestName};
  std::map<std::string, std::string> tensor_files;  // by tensor
  for (const Json& entry : *files) {
    MOTLEY_ASSIGN(WrittenFile file, written_file_from_json(entry, source));
    if (!names.insert(file.name).second) {
      return damaged_checkpoint(source, fmt::format("duplicate file '{}'", excerpt(file.name)));
    }
    for (const auto& tensor : file.tensor_hashes) {
      const auto [it, is_new] = tensor_files.emplace(tensor.first, file.name);
      if (!is_new) {
        return damaged_checkpoint(
            source, fmt::format("tensor '{}' is in {} and in {}", excerpt(tensor.first),
                                excerpt(it->second), excerpt(file.name)));
      }
    }
    manifest.files.push_back(std::move(file));
  }
  const auto config = json.find("config");
  if (config == json.end()) return damaged_checkpoint(source, "key 'config' is missing");
  manifest.config = *config;
  return manifest;
}

Result<InputFile> open_file_of(const std::filesystem::path& folder, const WrittenFile& file) {
  Result<InputFile> opened = InputFile::open(folder / file.name);
  std::error_code code;
  const bool is_present = std::filesystem::symlink_status(folder / file.name, code).type() !=
                          std::filesystem::file_type::not_found;
  if (opened.ok() || is_present || file.machine.empty()) return opened;
  Error error = opened.error();
  error.cause = fmt::format("it is stored on the machine {}, in its own run folder", file.machine);
  error.remedy = fmt::format(
      "collect all files of the checkpoint here:\n"
      "motley ckpt gather {} --cluster FILE\n"
      "where FILE is the run's cluster file",
      quote_for_shell(folder.string()));
  return error;
}

Result<Manifest> read_manifest(const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(folder / kManifestName));
  MOTLEY_ASSIGN(const std::string text, file.read_all(kManifestBytesMax));
  return parse_manifest(text, file.path().string());
}

Json weights_index(const std::map<std::string, std::string>& parameter_files,
                   std::uint64_t parameter_bytes) {
  return {{"metadata", {{"total_size", parameter_bytes}}}, {"weight_map", parameter_files}};
}

Result<WrittenFile> write_json_file(const std::filesystem::path& folder,
                                    const std::string& name,
                                    const Json& json) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const auto bytes = std::as_bytes(std::span(text));
  MOTLEY_ASSIGN(OutputFile file, OutputFile::create(folder / name));
  MOTLEY_TRY(file.write(bytes));
  MOTLEY_TRY(file.close());
  return WrittenFile{.name = name, .bytes = text.size(), .hash = hash128_hex(bytes)};
}

}  // namespace motley
