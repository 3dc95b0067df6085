// Weights in Hugging Face's layout: model.safetensors, or several files and their index, with the
// files that belong to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/convert/tensor_writer.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/work_observer.h"

namespace motley {

struct WeightsFolder {
  std::vector<NewTensor> tensors;  // in the order of the files
  FormatRule rule;
  std::uint64_t file_bytes_max = 5'000'000'000;  // of values; a larger tensor has its own file
  Json config;                                   // config.json; null = none
  std::vector<std::filesystem::path> beside;     // files to copy under their names
  std::string name = "model";                    // of the weight files, without suffix
};

// Writes it into `destination`, which exists completely or not at all. kConfig if that exists
// already, or a value is beyond the format's range.
[[nodiscard]] Result<std::vector<WrittenFile>> write_weights_folder(
    const std::filesystem::path& destination, const WeightsFolder& folder, WorkObserver& watch);

// Writes all tensors into one file.
[[nodiscard]] Result<WrittenFile> write_weights_file(const std::filesystem::path& destination,
                                                     const std::vector<NewTensor>& tensors,
                                                     const FormatRule& rule,
                                                     WorkObserver& watch);

}  // namespace motley
