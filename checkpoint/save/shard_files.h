// The two files of one rank's part of a checkpoint, whoever hands out their values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"

namespace motley {

// What lies in them, in the files' order.
struct ShardOutline {
  std::vector<TensorOutline> parameters;
  std::vector<TensorOutline> moments;

  // At least what the files take.
  [[nodiscard]] std::uint64_t bytes_max() const;
};

// Gives all values of a tensor to the writer; tensors are numbered from the first parameter to the
// last moment, and asked for in this order. What it fails with ends the writing.
using AddValues = std::function<Result<void>(std::size_t tensor, SafetensorsWriter& writer)>;

// Makes the partial folder where it is absent, and the files in it, synced, and the names that lead
// to them from the run folder on. kCorrupt when they
// cannot be written whole. `work` as in write_shard.
[[nodiscard]] Result<Shard> write_shard_files(const SavePlace& place,
                                              int rank,
                                              int rank_count,
                                              const ShardOutline& outline,
                                              const AddValues& add_values,
                                              WorkCounter* work);

}  // namespace motley
