// ShardWriter: writes one rank's part of a checkpoint on a thread of its own, while the rank
// computes on.
//
// What is saved is borrowed, not copied: until its optimizer runs, a step only reads parameters and
// moments, and that is most of the step. The thread takes piece after piece through a small buffer.
// Whoever is about to change what was borrowed calls let_go() first; what is not yet written then
// is copied as far as memory has room, and the disk is waited for only with the rest. The thread
// stands behind those that compute: where all cores are busy a shard is written over several steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"

namespace motley {

struct OwnedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// What a rank saves of one step.
struct ShardContents {
  // Borrowed. Parameters are all finite: nothing looks at them again.
  std::vector<TensorView> parameters;
  std::vector<TensorView> moments;
  std::vector<OwnedTensor> residuals;  // behind the moments in the file
};

// At least what write_shard or a ShardWriter writes of them.
[[nodiscard]] std::uint64_t shard_bytes_max(const ShardContents& contents);

class ShardWriter {
 public:
  // `spare_bytes`: of memory, that copies may take; asked in let_go(). `work` counts the bytes as
  // they reach the disk; nullptr: nobody does. Both must outlive the writer.
  ShardWriter(std::function<std::uint64_t()> spare_bytes, WorkCounter* work);
  // Leaves a shard that is not finished half-written, and is not told of it.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Called on the writer's thread when the shard is written or could not be: kCorrupt.
  using Done = std::function<void(const Result<Shard>& shard)>;

  // Waits for what was begun before. Then begins, and returns at once.
  void begin(const SavePlace& place, int rank, int rank_count, ShardContents contents, Done done);

  // When it returns nothing that was borrowed is read any more.
  void let_go();

  // Waits until what was begun is over and told.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
