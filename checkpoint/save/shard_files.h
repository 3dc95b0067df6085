// The two files of one rank's part of a checkpoint, independent of the source of their values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"

namespace motley {

// The tensors in the files, in order.
struct ShardOutline {
  std::vector<TensorOutline> parameters;
  std::vector<TensorOutline> moments;

  // An upper bound of the files' size.
  [[nodiscard]] std::uint64_t bytes_max() const;
};

// Passes all values of a tensor to the writer. Tensors are numbered from the first parameter to the
// last moment, and requested in this order. An error ends the writing.
using AddValues = std::function<Result<void>(std::size_t tensor, SafetensorsWriter& writer)>;

// Creates the partial folder if it is absent, and the files in it; syncs the files and the names
// that lead to them from the run folder on. kCorrupt if they cannot be written completely. `work`
// as in write_shard.
[[nodiscard]] Result<Shard> write_shard_files(const SaveLocation& location,
                                              int rank,
                                              int rank_count,
                                              const ShardOutline& outline,
                                              const AddValues& add_values,
                                              ProgressCounter* work);

}  // namespace motley
