// Inventory of the checkpoints in a machine's run folder, without changing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "checkpoint/replication/store_location.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/save/shard_report.h"

namespace motley {

// A checkpoint known to be committed.
struct WantedStep {
  std::int64_t step = 0;
  std::vector<WrittenFile> files;  // tensor files, without their tensors' hashes
};

[[nodiscard]] WantedStep wanted_step(const CheckpointMetadata& step_metadata);

struct StoreQuery {
  std::optional<WantedStep> wanted;         // files to look for; every byte is compared
  std::optional<std::int64_t> metadata_of;  // the step whose metadata is requested
};

struct StoreContents {
  StoreLocation location;
  std::string run;                   // as read_run_id()
  std::uint64_t free_bytes = 0;      // as free_bytes()
  std::int64_t last_launch = 0;      // highest number in the folder
  std::string lock_holder;           // the process that holds the folder's lock, as text; "" = none
  std::vector<std::int64_t> steps;   // of checkpoints with a manifest here, ascending
  std::vector<std::string> intact;   // wanted files that are intact
  std::vector<std::string> damaged;  // wanted files that exist with other contents
  std::optional<CheckpointMetadata> step_metadata;  // as requested, if available
  // Why they are not, if the step's manifest is here: an excerpt of one line.
  std::string metadata_error;
  std::vector<LeftReport> left;  // parts of saves that may be complete but are not committed
};

// First waits for workers in a machine's own folder that have lost their launcher and save their
// step. `work` counts the bytes read, with their expected total.
[[nodiscard]] Result<StoreContents> take_inventory(const StoreLocation& location,
                                                   const StoreQuery& store_query,
                                                   ProgressCounter* work);

}  // namespace motley
