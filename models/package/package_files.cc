// The files of a package's folder, and their consistency.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"
#include "checkpoint/safetensors.h"
#include "models/package/package.h"
#include "models/package/package_limits.h"
#include "models/package/package_names.h"
#include "models/package/sha256.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Prefix of constants that are in no state_dict and that the exporter names.
constexpr const char* kOwnConstantPrefix = "motley.";

Result<void> check_size(const Package& package) {
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(package.weights_path()));
  if (file.bytes() == package.weights.bytes) return {};
  return damaged_package(file.path(), fmt::format("it has {} bytes; {} declares {}", file.bytes(),
                                                  kPackageFileName, package.weights.bytes));
}

// Whether a file may have values of this dtype for a tensor that training changes: what is exactly
// a float32.
bool widens_exactly(const std::string& dtype) {
  return dtype == stored_dtype(Dtype::kBFloat16) || dtype == stored_dtype(Dtype::kFloat16);
}

// The parameters and statistics, which training changes.
std::set<std::string> moved_names(const Package& package) {
  std::set<std::string> moved;
  for (const PackageLayer& layer : package.layers) {
    for (const PackageParameter& each : layer.parameters) moved.insert(each.name);
    for (const PackageStatistic& each : layer.statistics) moved.insert(each.name);
  }
  return moved;
}

// Checks that the weights have the tensors that the layers name; they may have others.
Result<void> read_tensors(Package& package) {
  MOTLEY_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(package.weights_path()));
  const std::map<std::string, TensorSpec> named = tensors_of(package);
  const std::set<std::string> moved = moved_names(package);
  for (const auto& [name, tensor] : named) {
    const auto found = file.entries().find(name);
    if (found == file.entries().end()) {
      return damaged_package(package.weights_path(),
                             fmt::format("it lacks tensor '{}'", excerpt(name)));
    }
    const SafetensorsFile::Entry& entry = found->second;
    const bool has_type = entry.dtype == stored_dtype(tensor.type) ||
                          (moved.contains(name) && widens_exactly(entry.dtype));
    if (!has_type || entry.shape != tensor.shape) {
      return damaged_package(
          package.weights_path(),
          fmt::format("tensor '{}' is {} [{}]; {} declares {} [{}]", excerpt(name), entry.dtype,
                      fmt::join(entry.shape, ", "), kPackageFileName, stored_dtype(tensor.type),
                      fmt::join(tensor.shape, ", ")));
    }
  }
  std::vector<std::pair<std::uint64_t, std::string>> others;
  for (const auto& [name, entry] : file.entries()) {
    if (name.starts_with(kOwnConstantPrefix) || moved.contains(name)) continue;
    others.emplace_back(entry.begin, name);
  }
  for (const auto& [name, weight] : package.quantised) {
    if (file.entries().contains(name)) {
      return damaged_package(package.weights_path(),
                             fmt::format("it has tensor '{}', which is quantised", excerpt(name)));
    }
    others.emplace_back(file.entries().at(weight.codes).begin, name);
  }
  std::sort(others.begin(), others.end());
  for (auto& [begin, name] : others) package.untrained.push_back(std::move(name));
  return {};
}

// Reads config.json, the only one of these files that every checkpoint of a run has, too.
Result<void> read_model_config(Package& package) {
  const auto found = std::ranges::find(package.files, kModelConfigName, &ModelFile::name);
  if (found == package.files.end()) return {};
  MOTLEY_ASSIGN(package.model_config, read_model_file(package.folder, *found));
  const std::string source = (package.folder / kModelFilesFolder / kModelConfigName).string();
  MOTLEY_ASSIGN(const Json config, parse_json(package.model_config, source));
  if (config.is_object()) return {};
  return damaged_package(source, "it is not a JSON object");
}

}  // namespace

const char* stored_dtype(Dtype type) {
  switch (type) {
    case Dtype::kFloat32:
      return "F32";
    case Dtype::kInt64:
      return "I64";
    case Dtype::kBool:
      return "BOOL";
    case Dtype::kBFloat16:
      return "BF16";
    case Dtype::kFloat16:
      return "F16";
    case Dtype::kInt8:
      return "I8";
    case Dtype::kUInt8:
      return "U8";
  }
  return "";
}

FolderFingerprint Package::fingerprint() const {
  return {fs::absolute(folder).lexically_normal(), kPackageFileName, sha256, weights.file,
          weights.bytes};
}

Result<std::shared_ptr<const Package>> read_package(const fs::path& folder) {
  const fs::path path = folder / kPackageFileName;
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (!exists) {
    return Error{
        ErrorCode::kConfig, fmt::format("not a package of a model, {}", folder.string()),
        fmt::format("it has no {}", kPackageFileName),
        "give the folder written by motley.export; every machine needs it under this path"};
  }
  MOTLEY_ASSIGN(const std::string text, read_file(path, kPackageBytesMax));
  MOTLEY_ASSIGN(Package package, parse_package(text, path.string()));
  package.folder = folder;
  MOTLEY_TRY(check_size(package));
  MOTLEY_TRY(read_tensors(package));
  MOTLEY_TRY(read_model_config(package));
  return std::make_shared<const Package>(std::move(package));
}

Result<void> verify_package(const Package& package, ProgressCounter* work) {
  MOTLEY_TRY(check_size(package));
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(package.weights_path(), work));
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t done = 0; done < file.bytes();) {
    const auto part =
        std::span(block).first(std::min<std::uint64_t>(block.size(), file.bytes() - done));
    MOTLEY_TRY(file.read_at(done, part));
    hash.add(part);
    done += part.size();
  }
  const std::string hex = hash.hex();
  for (const ModelFile& each : package.files) {
    MOTLEY_ASSIGN(const std::string text, read_model_file(package.folder, each, work));
  }
  if (hex == package.weights.sha256) return {};
  return damaged_package(file.path(), fmt::format("its SHA-256 is {}; {} declares {}", hex,
                                                  kPackageFileName, package.weights.sha256));
}

}  // namespace motley
