// Weights as Hugging Face lays them out: model.safetensors, or several files and their index, with
// what belongs to them beside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/convert/tensor_writer.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/work_watch.h"

namespace motley {

struct WeightsFolder {
  std::vector<NewTensor> tensors;  // in the order of the files
  NumberRule rule;
  std::uint64_t file_bytes_max = 5'000'000'000;  // of values; a larger tensor has a file alone
  Json config;                                   // config.json; null = none
  std::vector<std::filesystem::path> beside;     // files that are copied under their names
  std::string name = "model";                    // of the files of weights, without ending
};

// Writes it into `destination`, which is there whole or not at all. kConfig when that exists, or a
// value does not go into the format.
[[nodiscard]] Result<std::vector<WrittenFile>> write_weights_folder(
    const std::filesystem::path& destination, const WeightsFolder& folder, WorkWatch& watch);

// All of it in one file.
[[nodiscard]] Result<WrittenFile> write_weights_file(const std::filesystem::path& destination,
                                                     const std::vector<NewTensor>& tensors,
                                                     const NumberRule& rule,
                                                     WorkWatch& watch);

}  // namespace motley
