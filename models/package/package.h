// Package: a model that was exported from PyTorch, as data (docs/formats/package.md). Reading one
// checks all of it, because packages are untrusted. The shapes, names and graphs of a Package are
// therefore consistent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/folder_fingerprint.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "models/package/graph.h"
#include "models/package/model_files.h"
#include "models/package/quantised_weight.h"
#include "models/package/tensor_spec.h"

namespace motley {

struct PackageParameter {
  std::string name;  // in the state_dict
  std::vector<std::int64_t> shape;
  bool decayed = false;  // weight decay applies
  bool tied = false;     // a further use of the parameter of this name, which an earlier layer owns
};

// State that training updates without a gradient, such as a BatchNorm's running mean.
struct PackageStatistic {
  std::string name;
  std::vector<std::int64_t> shape;
  double momentum = 0;  // share of the observed value in an update
};

struct PackageConstant {
  std::string name;
  TensorSpec tensor;
};

struct PackageLayer {
  std::string name;
  int graph = 0;                      // in Package::graphs
  std::vector<BoundarySpec> outputs;  // of the boundary after it; none for the last
  std::vector<PackageParameter> parameters;
  std::vector<PackageStatistic> statistics;
  std::vector<PackageConstant> constants;
  double flops_per_sample = 0;  // of matrix products, forward
  // Of the two parts of backward; nullopt in packages made before it was counted.
  std::optional<double> input_part_flops_per_sample;
  std::optional<double> weight_part_flops_per_sample;
  // hash128 of the graph and of all shapes: equal signatures, equal cost.
  std::string signature;
};

// The file with initial values and constants, by name.
struct PackageWeights {
  std::string file;  // without folder
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits
};

struct Package {
  enum class Unit { kSample, kToken };

  std::filesystem::path folder;
  // hash128 of package.json, which contains the hash of the weights: the model's identity.
  std::string hash;
  std::string sha256;  // of package.json, for comparison with other programs
  std::string made_by;
  std::string name;
  std::vector<SampleInput> inputs;  // of the first layer; at least one
  TensorSpec target;                // of one sample; fp32 or int64
  // Integers of the target are from 0 to below it, or `ignored`; 0 for floats.
  std::int64_t target_limit = 0;
  std::optional<std::int64_t> ignored;  // the target integer that the loss ignores
  std::int64_t units_per_sample = 1;    // the most terms that a sample's loss has
  Unit unit = Unit::kSample;            // the unit of reported rates
  std::vector<PackageLayer> layers;     // at least one
  std::vector<LayerGraph> graphs;       // each is used by a layer
  PackageWeights weights;
  std::vector<ModelFile> files;  // further files for an export of the trained model
  // [parameter] its name in an adapter of peft; either all trained parameters or none.
  std::map<std::string, std::string> adapter_names;
  // [tensor of the state_dict] that layers have in 8 or 4 bits; the weights contain only this form.
  std::map<std::string, QuantisedWeight> quantised;
  // Only if read from a folder: the contents of files/config.json, a JSON object; "" = none.
  std::string model_config;
  // Only if read from a folder: names of the state_dict's tensors that are not trained, in file
  // order.
  std::vector<std::string> untrained;

  // The inputs of layer `index` for one sample; the data's inputs have no gradient. REQUIRES: index
  // is valid.
  [[nodiscard]] std::vector<BoundarySpec> inputs_of(int index) const;

  [[nodiscard]] std::filesystem::path weights_path() const { return folder / weights.file; }

  // Fingerprint that identifies copies on other machines. REQUIRES: it was read from a folder.
  [[nodiscard]] FolderFingerprint fingerprint() const;
};

// How safetensors name it: "F32", "BF16", …
[[nodiscard]] const char* stored_dtype(Dtype type);

inline constexpr const char* kPackageFileName = "package.json";

// Reads and checks package.json, and the header and the size of the weights. kConfig if the folder
// is not a package, is of another version, or uses an operation that is not allowed (the error
// names it and the layer); kCorrupt if it is damaged.
[[nodiscard]] Result<std::shared_ptr<const Package>> read_package(
    const std::filesystem::path& folder);

// The same for the contents of package.json alone; `source` names it in errors.
[[nodiscard]] Result<Package> parse_package(std::string_view text, const std::string& source);

// Reads all of its files and compares their hashes. kCorrupt if one differs. `work` counts the
// bytes; nullptr: not counted.
[[nodiscard]] Result<void> verify_package(const Package& package, ProgressCounter* work = nullptr);

}  // namespace motley
