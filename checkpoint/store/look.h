// Inventory of the checkpoints in a machine's run folder, without changing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store/store_place.h"
#include "checkpoint/store/texts.h"

namespace motley {

// A checkpoint known to be committed.
struct WantedStep {
  std::int64_t step = 0;
  std::vector<WrittenFile> files;  // tensor files, without their tensors' hashes
};

[[nodiscard]] WantedStep wanted_of(const CheckpointMetadata& texts);

struct StoreQuestion {
  std::optional<WantedStep> wanted;      // files to look for; every byte is compared
  std::optional<std::int64_t> texts_of;  // the step whose metadata is requested
};

struct StoreAnswer {
  StorePlace place;
  std::string run;                   // as read_run_id()
  std::uint64_t free_bytes = 0;      // as free_bytes()
  std::int64_t last_launch = 0;      // highest number in the folder
  std::string held_by;               // the process that holds the folder's lock, as text; "" = none
  std::vector<std::int64_t> steps;   // of checkpoints with a manifest here, ascending
  std::vector<std::string> whole;    // wanted files that are intact
  std::vector<std::string> damaged;  // wanted files that exist with other contents
  std::optional<CheckpointMetadata> texts;  // as requested, if available
  // Why they are not, if the step's manifest is here: an excerpt of one line.
  std::string untold;
};

// `work` counts the bytes read, with their expected total.
[[nodiscard]] Result<StoreAnswer> look_into_store(const StorePlace& place,
                                                  const StoreQuestion& question,
                                                  WorkCounter* work);

}  // namespace motley
