// What an export of a run's checkpoint takes from the package that was trained: the tensors that
// training does not move, which no checkpoint has, and the files of the model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/convert/tensor_writer.h"
#include "models/package/package.h"
#include "tools/ckpt/weights_inputs.h"

namespace motley {

class PackageExport {
 public:
  // Reads the package that the checkpoint's configuration names, every byte, or that in `folder`
  // where it is not empty. kConfig where it is not there, or is not the one that was trained.
  [[nodiscard]] static Result<PackageExport> open(const OpenedWeights& weights,
                                                  const std::string& folder);

  // Of the state_dict all that is not in the checkpoint. `as_stored`: floats keep the type that
  // they have in the package, and what is quantised the type that it had in the model. REQUIRES:
  // this outlives what it returns.
  [[nodiscard]] std::vector<NewTensor> untrained(bool as_stored) const;

  [[nodiscard]] bool is_adapter() const { return !package_->adapter_names.empty(); }

  // What peft calls a parameter. REQUIRES: is_adapter(), and the package trains it.
  [[nodiscard]] const std::string& adapter_name(const std::string& parameter) const {
    return package_->adapter_names.at(parameter);
  }

  // Its config.json; null where it keeps none.
  [[nodiscard]] Result<Json> config() const;

  // Its other files.
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
  SafetensorsFile raw_;  // the same file, for tensors of integers
  std::int64_t steps_;
};

}  // namespace motley
