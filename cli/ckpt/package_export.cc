#include "cli/ckpt/package_export.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "checkpoint/convert/value_stream.h"
#include "checkpoint/folders.h"
#include "cli/ckpt/quantised_values.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool is_float(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

// REQUIRES: is_float.
FloatFormat format_of(std::string_view dtype) {
  if (dtype == "F16") return FloatFormat::kFp16;
  return dtype == "BF16" ? FloatFormat::kBf16 : FloatFormat::kFp32;
}

// A BatchNorm's step counter becomes the number of steps of the run.
bool counts_steps(const StoredTensor& tensor) {
  return tensor.outline.dtype == "I64" && tensor.outline.shape.empty() &&
         tensor.outline.name.ends_with("num_batches_tracked");
}

Error with_package_remedy(Error error) {
  error.remedy =
      "copy the package here, or give its folder with --package: only it contains the untrained "
      "tensors and the model's files";
  return error;
}

}  // namespace

Result<PackageExport> PackageExport::open(const OpenedWeights& weights, const std::string& folder) {
  ModelConfig model = *weights.model;
  if (!folder.empty()) model.path = folder;
  const auto spec = describe_model(model);
  if (!spec.ok()) {
    return spec.error().code == ErrorCode::kConfig ? with_package_remedy(spec.error())
                                                   : spec.error();
  }
  if (spec->hash() != weights.reader.manifest()->state.model_hash) {
    return Error{ErrorCode::kConfig,
                 fmt::format("this package is not the trained one, {}", model.path),
                 fmt::format("{} is of another model", weights.path.string()),
                 "give the folder of the trained package with --package"};
  }
  MOTLEY_TRY(verify_package(*spec->package));
  const fs::path file = spec->package->weights_path();
  MOTLEY_ASSIGN(CheckpointReader reader, CheckpointReader::open(file));
  MOTLEY_ASSIGN(SafetensorsFile raw, SafetensorsFile::open(file));
  return PackageExport(spec->package, std::move(reader), std::move(raw),
                       weights.reader.manifest()->state.step);
}

NewTensor PackageExport::stored(const StoredTensor& tensor, bool as_stored) const {
  NewTensor added{tensor.outline.name, tensor.outline.shape, {}};
  if (is_float(tensor.outline.dtype)) {
    added.open = [this, tensor] { return std::make_unique<StoredValues>(weights_, tensor); };
    if (as_stored) added.format = format_of(tensor.outline.dtype);
    return added;
  }
  added.dtype = tensor.outline.dtype;
  added.bytes = [this, tensor]() -> Result<std::vector<std::byte>> {
    const SafetensorsFile::Entry& entry = raw_.entries().at(tensor.outline.name);
    std::vector<std::byte> bytes(entry.end - entry.begin);
    if (counts_steps(tensor)) {
      std::memcpy(bytes.data(), &steps_, bytes.size());
      return bytes;
    }
    MOTLEY_TRY(raw_.read_bytes(tensor.outline.name, entry.dtype, entry.shape, bytes));
    return bytes;
  };
  return added;
}

std::vector<NewTensor> PackageExport::untrained(bool as_stored) const {
  std::map<std::string, StoredTensor> found;
  for (StoredTensor& tensor : weights_.tensors()) found.emplace(tensor.outline.name, tensor);
  std::vector<NewTensor> tensors;
  for (const std::string& name : package_->untrained) {
    const auto quantised = package_->quantised.find(name);
    if (quantised == package_->quantised.end()) {
      tensors.push_back(stored(found.at(name), as_stored));
      continue;
    }
    const QuantisedWeight& weight = quantised->second;
    NewTensor& added = tensors.emplace_back(NewTensor{name, weight.tensor.shape, {}});
    added.open = [this, weight] { return std::make_unique<QuantisedValues>(raw_, weight); };
    if (as_stored) added.format = format_of(stored_dtype(weight.tensor.type));
  }
  return tensors;
}

Result<Json> PackageExport::config() const {
  if (package_->model_config.empty()) return Json();
  return parse_json(package_->model_config, kModelConfigName);
}

std::vector<fs::path> PackageExport::files() const {
  std::vector<fs::path> files;
  for (const ModelFile& file : package_->files) {
    if (file.name != kModelConfigName) {
      files.push_back(package_->folder / kModelFilesFolder / file.name);
    }
  }
  return files;
}

}  // namespace motley
