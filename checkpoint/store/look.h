// What a machine's run folder holds of a run's checkpoints, looked at without changing it.
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

// A checkpoint that somebody knows to be committed.
struct WantedStep {
  std::int64_t step = 0;
  std::vector<WrittenFile> files;  // of tensors; what they hold is left out
};

[[nodiscard]] WantedStep wanted_of(const CheckpointMetadata& texts);

struct StoreQuestion {
  std::optional<WantedStep> wanted;      // files to look for, every byte compared
  std::optional<std::int64_t> texts_of;  // a step whose texts are asked for
};

struct StoreAnswer {
  StorePlace place;
  std::string run;                   // as read_run_id()
  std::uint64_t free_bytes = 0;      // as free_bytes()
  std::int64_t last_launch = 0;      // that was in the folder
  std::string held_by;               // the process that holds the folder's lock, as text; "" = none
  std::vector<std::int64_t> steps;   // of checkpoints of which it has the manifest, ascending
  std::vector<std::string> whole;    // of the wanted files
  std::vector<std::string> damaged;  // of the wanted files: there, and not as they should be
  std::optional<CheckpointMetadata> texts;  // those asked for, where they are there
  // Why they are not, where it has that step's manifest: an excerpt of one line.
  std::string untold;
};

// `work` counts the bytes that are read, of those that there are to be read.
[[nodiscard]] Result<StoreAnswer> look_into_store(const StorePlace& place,
                                                  const StoreQuestion& question,
                                                  WorkCounter* work);

}  // namespace motley
