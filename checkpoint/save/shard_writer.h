// ShardWriter: writes one rank's part of a checkpoint on its own thread, while the rank continues
// to compute.
//
// The values are borrowed, not copied: until its optimizer runs, a step only reads parameters and
// moments, and that is most of the step. The thread copies piece after piece through a small
// buffer. A caller that is about to change the borrowed values calls copy_unwritten() first. This
// copies the unwritten values as far as memory allows, and waits for the disk only with the rest.
// The thread has a lower priority than compute threads: where all cores are busy, a shard is
// written over several steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

struct OwnedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// The data that a rank saves of one step.
struct ShardContents {
  // Borrowed. Parameters must be finite: that is not checked again.
  std::vector<TensorView> parameters;
  std::vector<TensorView> moments;
  std::vector<OwnedTensor> residuals;  // after the moments in the file
};

// An upper bound of the bytes that write_shard or a ShardWriter writes.
[[nodiscard]] std::uint64_t shard_bytes_max(const ShardContents& contents);

class ShardWriter {
 public:
  // `spare_bytes`: returns the memory that copies may take; called in copy_unwritten(). `work`
  // counts the bytes as they reach the disk; nullptr: not counted. Both must outlive the writer.
  ShardWriter(std::function<std::uint64_t()> spare_bytes, ProgressCounter* work);
  // Leaves an unfinished shard half-written and does not report it.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Called on the writer's thread when the shard is written, or with kCorrupt if that failed.
  using Done = std::function<void(const Result<Shard>& shard)>;

  // Waits for an earlier save. Then starts this one and returns at once.
  void begin(
      const SaveLocation& location, int rank, int rank_count, ShardContents contents, Done done);

  // Once it returns, borrowed values are not read any more.
  void copy_unwritten();

  // Waits until the current save has ended and was reported.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
