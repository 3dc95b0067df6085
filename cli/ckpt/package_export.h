// The parts of an export that come from the trained package: the tensors that training does not
// change, which checkpoints do not contain, and the model's files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/convert/tensor_writer.h"
#include "cli/ckpt/weights_inputs.h"
#include "models/package/package.h"

namespace motley {

class PackageExport {
 public:
  // Reads and verifies the package that the checkpoint's configuration names, or the one in
  // `folder` if that is not empty. kConfig if it does not exist or is not the one that was trained.
  [[nodiscard]] static Result<PackageExport> open(const OpenedWeights& weights,
                                                  const std::string& folder);

  // All tensors of the state_dict that are not in the checkpoint. `as_stored`: floats keep their
  // type in the package, and quantised weights have their type in the model. REQUIRES: this
  // outlives the result.
  [[nodiscard]] std::vector<NewTensor> untrained(bool as_stored) const;

  [[nodiscard]] bool is_adapter() const { return !package_->adapter_names.empty(); }

  // The parameter's name in peft. REQUIRES: is_adapter(), and the package trains the parameter.
  [[nodiscard]] const std::string& adapter_name(const std::string& parameter) const {
    return package_->adapter_names.at(parameter);
  }

  // The package's config.json; null if it has none.
  [[nodiscard]] Result<Json> config() const;

  // The package's other files.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

 private:
  PackageExport(std::shared_ptr<const Package> package,
                CheckpointReader weights,
                SafetensorsFile raw,
                std::int64_t steps)
      : package_(std::move(package)),
        weights_(std::move(weights)),
        raw_(std::move(raw)),
        steps_(steps) {}

  [[nodiscard]] NewTensor stored(const StoredTensor& tensor, bool as_stored) const;

  std::shared_ptr<const Package> package_;
  CheckpointReader weights_;
  SafetensorsFile raw_;  // the same file, for integer tensors
  std::int64_t steps_;
};

}  // namespace motley
