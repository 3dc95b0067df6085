#include "cli/ckpt/package_export.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/convert/value_stream.h"
#include "checkpoint/folders.h"
#include "checkpoint/safetensors.h"
#include "models/package/quantised_weight.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

// QuantisedValues: the float32 values of a package's matrix in 8 or 4 bits, as its layers compute
// them (docs/formats/package.md, "Quantised weights").
class QuantisedValues final : public ValueStream {
 public:
  // REQUIRES: `file` has the weights of the package that `weight` is of, and outlives the stream.
  QuantisedValues(const SafetensorsFile& file, QuantisedWeight weight);
  [[nodiscard]] Result<void> next(std::span<float> values) override;

 private:
  [[nodiscard]] Result<void> next_of_eight_bits(std::span<float> values);
  [[nodiscard]] Result<void> next_of_four_bits(std::span<float> values);

  const SafetensorsFile& file_;
  QuantisedWeight weight_;
  std::uint64_t columns_;
  bool has_scales_of_rows_;
  std::vector<float> table_;   // in 4 bits
  std::vector<float> scales_;  // of the columns, or of what was read last
  std::vector<std::byte> codes_;
  std::uint64_t done_ = 0;
};

constexpr std::uint64_t kByteValues = 256;
constexpr std::uint64_t kCodesInByte = 2;
constexpr auto kBlock = static_cast<std::uint64_t>(kQuantisedBlock);

QuantisedValues::QuantisedValues(const SafetensorsFile& file, QuantisedWeight weight)
    : file_(file),
      weight_(std::move(weight)),
      columns_(static_cast<std::uint64_t>(weight_.tensor.shape[1])),
      has_scales_of_rows_(file_.entries().at(weight_.scales).shape ==
                          std::vector<std::int64_t>{weight_.tensor.shape[0], 1}) {}

Result<void> QuantisedValues::next(std::span<float> values) {
  if (values.empty()) return {};
  MOTLEY_TRY(weight_.has_four_bits() ? next_of_four_bits(values) : next_of_eight_bits(values));
  done_ += values.size();
  return {};
}

Result<void> QuantisedValues::next_of_eight_bits(std::span<float> values) {
  codes_.resize(values.size());
  MOTLEY_TRY(file_.read_bytes_part(weight_.codes, done_, codes_));
  const std::uint64_t first_row = done_ / columns_;
  if (has_scales_of_rows_) {
    scales_.resize((done_ + values.size() - 1) / columns_ - first_row + 1);
    MOTLEY_TRY(file_.read_part(weight_.scales, first_row, scales_));
  } else if (scales_.empty()) {
    scales_.resize(columns_);
    MOTLEY_TRY(file_.read_part(weight_.scales, 0, scales_));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t position = done_ + i;
    const auto scale = has_scales_of_rows_ ? position / columns_ - first_row : position % columns_;
    values[i] = static_cast<float>(static_cast<std::int8_t>(codes_[i])) * scales_[scale];
  }
  return {};
}

Result<void> QuantisedValues::next_of_four_bits(std::span<float> values) {
  if (table_.empty()) {
    table_.resize(kByteValues * kCodesInByte);
    MOTLEY_TRY(file_.read_part(weight_.table, 0, table_));
  }
  const std::uint64_t last = done_ + values.size() - 1;
  const std::uint64_t first_byte = done_ / kCodesInByte;
  codes_.resize(last / kCodesInByte - first_byte + 1);
  MOTLEY_TRY(file_.read_bytes_part(weight_.codes, first_byte, codes_));
  const std::uint64_t first_block = done_ / kBlock;
  scales_.resize(last / kBlock - first_block + 1);
  MOTLEY_TRY(file_.read_part(weight_.scales, first_block, scales_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t position = done_ + i;
    const auto byte = static_cast<std::size_t>(codes_[position / kCodesInByte - first_byte]);
    values[i] = table_[byte * kCodesInByte + position % kCodesInByte] *
                scales_[position / kBlock - first_block];
  }
  return {};
}

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
