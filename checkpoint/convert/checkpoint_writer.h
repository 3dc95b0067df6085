// Writes a complete checkpoint with its manifest from one process, into a folder of any name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/convert/tensor_writer.h"

namespace motley {

struct NewCheckpoint {
  CheckpointState state;
  Json config;                              // the run's
  Json model_config;                        // config.json; null = none
  std::vector<NewTensor> parameters;        // in the order of the files
  std::vector<NewTensor> moments;           // likewise; empty = no optimizer files
  std::vector<std::size_t> parameter_ends;  // [file]: where its parameters end
  std::vector<std::size_t> moment_ends;     // [file]: where its moments end
};

// Writes it into `destination`, which exists completely or not at all. kConfig if that exists
// already.
[[nodiscard]] Result<Manifest> write_checkpoint(const std::filesystem::path& destination,
                                                const NewCheckpoint& checkpoint,
                                                WorkObserver& watch);

}  // namespace motley
