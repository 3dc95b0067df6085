#include "checkpoint/replication/checkpoint_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"
#include "checkpoint/manifest.h"

namespace motley {
namespace {

bool holds_tensors(const WrittenFile& file) {
  return is_parameter_file(file.name) || is_optimizer_file(file.name);
}

// Checks that these are exactly the files that the manifest names, each with its hash.
Result<CheckpointMetadata> checked(std::map<std::string, std::string> files,
                                   const std::string& source) {
  CheckpointMetadata step_metadata;
  MOTLEY_ASSIGN(step_metadata.manifest, parse_manifest(files[kManifestName], source));
  std::size_t known = 1;
  for (const WrittenFile& file : step_metadata.manifest.files) {
    if (holds_tensors(file)) continue;
    ++known;
    const auto found = files.find(file.name);
    const bool is_intact = found != files.end() && found->second.size() == file.bytes &&
                           hash128_hex(std::as_bytes(std::span(found->second))) == file.hash;
    if (is_intact) continue;
    return Error{ErrorCode::kCorrupt, fmt::format("damaged checkpoint, {}", source),
                 fmt::format("{} differs from the manifest", file.name),
                 "use an earlier checkpoint"};
  }
  if (known != files.size()) {
    return Error{ErrorCode::kCorrupt, fmt::format("damaged checkpoint, {}", source),
                 "the manifest does not list all of its files", "use an earlier checkpoint"};
  }
  step_metadata.files = std::move(files);
  return step_metadata;
}

// A symbolic link in a checkpoint is not followed.
Result<std::string> read_text(const std::filesystem::path& path) {
  constexpr std::uint64_t kTextBytesMax = 64ULL << 20;
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(path));
  return file.read_all(kTextBytesMax);
}

}  // namespace

Result<CheckpointMetadata> read_metadata(const std::filesystem::path& folder) {
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(folder));
  std::map<std::string, std::string> files;
  MOTLEY_ASSIGN(files[kManifestName], read_text(folder / kManifestName));
  for (const WrittenFile& file : manifest.files) {
    if (holds_tensors(file)) continue;
    MOTLEY_ASSIGN(files[file.name], read_text(folder / file.name));
  }
  return checked(std::move(files), folder.string());
}

Json metadata_to_json(const CheckpointMetadata& step_metadata) {
  return Json(step_metadata.files);
}

Result<CheckpointMetadata> metadata_from_json(const Json& json, const std::string& source) {
  std::map<std::string, std::string> files;
  if (json.is_object()) {
    for (const auto& [name, text] : json.items()) {
      if (text.is_string() && is_plain_name(name)) files[name] = text.get<std::string>();
    }
  }
  return checked(std::move(files), source);
}

bool is_partial_copy(const std::filesystem::path& folder) {
  const Result<Manifest> manifest = read_manifest(folder);
  if (!manifest.ok()) return false;
  return std::ranges::any_of(manifest->files, [&](const WrittenFile& file) {
    std::error_code code;
    return std::filesystem::symlink_status(folder / file.name, code).type() ==
           std::filesystem::file_type::not_found;
  });
}

std::vector<WrittenFile> tensor_files(const Manifest& manifest) {
  std::vector<WrittenFile> files;
  for (const WrittenFile& file : manifest.files) {
    if (holds_tensors(file)) files.push_back(file);
  }
  return files;
}

}  // namespace motley
