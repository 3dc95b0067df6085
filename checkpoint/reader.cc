#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/weight_names.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTransformerPrefix = "transformer.";
constexpr std::string_view kExtension = ".safetensors";
constexpr std::uint64_t kIndexBytesMax = 16ULL << 20;
constexpr std::uint64_t kModelConfigBytesMax = 1ULL << 20;

Error unreadable(const fs::path& path, std::string cause, std::string remedy) {
  return {ErrorCode::kCorrupt, fmt::format("cannot read a checkpoint, {}", path.string()),
          std::move(cause), std::move(remedy)};
}

// Hugging Face's cache consists of links to files named by their hashes. The user chose this
// folder, so its links are followed; those in our checkpoints are not.
Result<fs::path> resolve(const fs::path& path) {
  std::error_code code;
  fs::path resolved = fs::canonical(path, code);
  if (code) return file_error("read", path, code.value());
  return resolved;
}

// The files listed in a Hugging Face index.
Result<std::vector<fs::path>> indexed_files(const fs::path& folder) {
  const fs::path path = folder / kIndexName;
  MOTLEY_ASSIGN(const fs::path resolved, resolve(path));
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(resolved));
  MOTLEY_ASSIGN(const std::string text, file.read_all(kIndexBytesMax));
  // Parsed as sorted objects: the project's Json preserves the order of keys and searches linearly,
  // which would take hours for an index of a million names.
  const auto index = nlohmann::json::parse(text, nullptr, false);
  const std::string remedy = "download the index again";
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return unreadable(path, "it is not JSON with an object 'weight_map'", remedy);
  }
  std::set<std::string> names;
  for (const auto& name : index["weight_map"]) {
    if (!name.is_string() || !is_plain_name(name.get<std::string>())) {
      return unreadable(path, "'weight_map' has a file outside of its folder", remedy);
    }
    names.insert(name.get<std::string>());
  }
  std::vector<fs::path> files;
  files.reserve(names.size());
  for (const std::string& name : names) files.push_back(folder / name);
  return files;
}

// The safetensors files of a folder without a manifest.
Result<std::vector<fs::path>> foreign_files(const fs::path& folder) {
  std::error_code code;
  if (fs::exists(folder / kIndexName, code)) return indexed_files(folder);
  if (fs::exists(folder / "model.safetensors", code)) {
    return std::vector{folder / "model.safetensors"};
  }
  std::vector<fs::path> files;
  fs::directory_iterator it(folder, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    if (it->path().extension() == kExtension) files.push_back(it->path());
  }
  if (code) return file_error("list", folder, code.value());
  if (files.size() != 1) {
    return unreadable(folder,
                      fmt::format("it has neither {} nor {}, but {} other safetensors files",
                                  kManifestName, kIndexName, files.size()),
                      "give a folder checkpoints/step-… of a run, a folder of a Hugging Face "
                      "model, or one safetensors file");
  }
  return files;
}

}  // namespace

struct CheckpointReader::Impl {
  struct Tensor {
    std::size_t file = 0;  // index into files
    std::string hash;      // empty if unknown
  };

  fs::path named;  // the path as passed to open
  std::optional<Manifest> manifest;
  std::vector<SafetensorsFile> files;
  std::vector<fs::path> paths;  // of the files, unresolved
  std::map<std::string, Tensor> tensors;

  // Adds the tensors of an opened file; `hashes` is null for a third-party file.
  Result<void> add(const fs::path& path,
                   SafetensorsFile file,
                   const std::map<std::string, std::string>* hashes) {
    for (const auto& [name, entry] : file.entries()) {
      Tensor tensor{.file = files.size()};
      if (hashes != nullptr) {
        const auto hash = hashes->find(name);
        if (hash == hashes->end()) {
          return unreadable(path, fmt::format("the manifest lacks tensor '{}'", name),
                            "use an earlier checkpoint, or copy this one again");
        }
        tensor.hash = hash->second;
      }
      if (!tensors.emplace(name, std::move(tensor)).second) {
        return unreadable(path, fmt::format("tensor '{}' is also in another file", name),
                          "remove one of the two files");
      }
    }
    files.push_back(std::move(file));
    paths.push_back(path);
    return {};
  }

  // Adds the files in the manifest, which are in the opened folder.
  Result<void> add_manifests_files(ProgressCounter* work) {
    for (const WrittenFile& expected : manifest->files) {
      const fs::path file_path = named / expected.name;
      MOTLEY_ASSIGN(const InputFile file, open_file_of(named, expected));
      if (file.bytes() != expected.bytes) {
        return unreadable(
            file_path,
            fmt::format("it has {} bytes; the manifest says {}", file.bytes(), expected.bytes),
            "use an earlier checkpoint, or copy this one again");
      }
      if (file_path.extension() != kExtension) continue;
      MOTLEY_ASSIGN(SafetensorsFile opened, SafetensorsFile::open(file_path, work));
      MOTLEY_TRY(add(file_path, std::move(opened), &expected.tensor_hashes));
    }
    return {};
  }

  [[nodiscard]] std::map<std::string, Tensor>::const_iterator find(const std::string& name) const {
    for (const std::string& form : weight_name_forms(name)) {
      if (const auto found = tensors.find(form); found != tensors.end()) return found;
    }
    return tensors.end();
  }
};

CheckpointReader::CheckpointReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

Result<CheckpointReader> CheckpointReader::open_part(const fs::path& path, ProgressCounter* work) {
  auto impl = std::make_unique<Impl>();
  impl->named = path;
  MOTLEY_ASSIGN(impl->manifest, read_manifest(path));
  std::erase_if(impl->manifest->files, [&](const WrittenFile& file) {
    std::error_code code;
    return !file.machine.empty() &&
           fs::symlink_status(path / file.name, code).type() == fs::file_type::not_found;
  });
  MOTLEY_TRY(impl->add_manifests_files(work));
  return CheckpointReader(std::move(impl));
}

Result<CheckpointReader> CheckpointReader::open(const fs::path& path, ProgressCounter* work) {
  auto impl = std::make_unique<Impl>();
  impl->named = path;
  std::error_code code;
  const bool is_folder = fs::is_directory(path, code);
  if (is_folder && has_manifest(path)) {
    MOTLEY_ASSIGN(impl->manifest, read_manifest(path));
    MOTLEY_TRY(impl->add_manifests_files(work));
    return CheckpointReader(std::move(impl));
  }

  std::vector<fs::path> files = {path};
  if (is_folder) {
    MOTLEY_ASSIGN(files, foreign_files(path));
  }
  for (const fs::path& file_path : files) {
    MOTLEY_ASSIGN(const fs::path resolved, resolve(file_path));
    MOTLEY_ASSIGN(SafetensorsFile tensors, SafetensorsFile::open(resolved, work));
    MOTLEY_TRY(impl->add(file_path, std::move(tensors), nullptr));
  }
  return CheckpointReader(std::move(impl));
}

const Manifest* CheckpointReader::manifest() const {
  return impl_->manifest ? &*impl_->manifest : nullptr;
}

bool CheckpointReader::has(const std::string& name) const {
  return impl_->find(name) != impl_->tensors.end();
}

std::optional<std::string> CheckpointReader::stored_name(const std::string& name) const {
  const auto found = impl_->find(name);
  return found == impl_->tensors.end() ? std::nullopt : std::optional(found->first);
}

std::vector<StoredTensor> CheckpointReader::tensors() const {
  std::vector<StoredTensor> all;
  for (std::size_t i = 0; i < impl_->files.size(); ++i) {
    const auto& entries = impl_->files[i].entries();
    std::vector<const std::pair<const std::string, SafetensorsFile::Entry>*> by_place;
    by_place.reserve(entries.size());
    for (const auto& entry : entries) by_place.push_back(&entry);
    std::ranges::stable_sort(by_place, {}, [](const auto* entry) {
      return std::pair(entry->second.begin, entry->second.end);
    });
    const bool of_optimizer =
        impl_->manifest && is_optimizer_file(impl_->paths[i].filename().string());
    for (const auto* each : by_place) {
      const auto& [name, entry] = *each;
      all.push_back({{name, entry.dtype, entry.shape},
                     impl_->paths[i],
                     impl_->tensors.at(name).hash,
                     of_optimizer});
    }
  }
  return all;
}

Result<WeightsOutline> CheckpointReader::outline() const {
  WeightsOutline outline;
  for (const SafetensorsFile& file : impl_->files) {
    for (const auto& [name, entry] : file.entries()) {
      // "exp_avg/<name>": optimizer state, in a checkpoint of ours.
      if (impl_->manifest && name.find('/') != std::string::npos) continue;
      const bool has_prefix = name.starts_with(kTransformerPrefix);
      outline.tensors[has_prefix ? name.substr(kTransformerPrefix.size()) : name] = entry.shape;
    }
  }
  outline.source = impl_->named.string();
  std::error_code code;
  const bool is_folder = fs::is_directory(impl_->named, code);
  const fs::path config =
      (is_folder ? impl_->named : impl_->named.parent_path()) / kModelConfigName;
  // A dangling link is a file that cannot be read.
  const fs::file_type type = fs::symlink_status(config, code).type();
  if (type == fs::file_type::not_found) return outline;
  MOTLEY_ASSIGN(const fs::path resolved, resolve(config));
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(resolved));
  MOTLEY_ASSIGN(const std::string text, file.read_all(kModelConfigBytesMax));
  MOTLEY_ASSIGN(outline.config, parse_json(text, config.string()));
  if (!outline.config.is_object()) {
    return unreadable(config, "it is not a JSON object", "download the file again");
  }
  outline.source = config.string();
  return outline;
}

Result<void> CheckpointReader::read(const std::string& name,
                                    const std::vector<std::int64_t>& shape,
                                    std::span<float> values) const {
  const auto found = impl_->find(name);
  if (found == impl_->tensors.end()) {
    return Error{ErrorCode::kCorrupt, fmt::format("no tensor '{}' in the checkpoint", name),
                 fmt::format("none of its {} files contains it", impl_->files.size()),
                 "check that the checkpoint is of the same model and optimizer"};
  }
  const auto& [stored_name, tensor] = *found;
  MOTLEY_TRY(impl_->files[tensor.file].read(stored_name, shape, values));
  if (!tensor.hash.empty() && hash128_hex(std::as_bytes(values)) != tensor.hash) {
    return Error{ErrorCode::kCorrupt, fmt::format("damaged tensor '{}' in the checkpoint", name),
                 "its hash differs from the manifest's",
                 "use an earlier checkpoint, or copy this one again"};
  }
  return {};
}

Result<void> CheckpointReader::read_part(const std::string& stored_name,
                                         std::uint64_t first,
                                         std::span<float> values) const {
  return impl_->files[impl_->tensors.at(stored_name).file].read_part(stored_name, first, values);
}

}  // namespace motley
