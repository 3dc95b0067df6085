// Collects the shards of a step from all ranks and commits the checkpoint when the last has come.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "job/config.h"
#include "models/spec/model_spec.h"

namespace motley {

class CheckpointCommitter {
 public:
  // `model`: for its hash and family; `plan_hash` is informative.
  CheckpointCommitter(std::filesystem::path run_dir,
                      const Config& config,
                      const ModelSpec& model,
                      std::uint64_t plan_hash,
                      int rank_count);

  // Takes a worker's "shard" event. Returns the committed folder when it was the last of its step.
  // kCorrupt when the event is malformed, ranks disagree about the state, or the commit fails.
  [[nodiscard]] Result<std::optional<std::filesystem::path>> add(int rank, const Json& event);

 private:
  struct Open {
    CheckpointState state;
    std::map<int, Shard> shards;  // by rank
  };

  std::filesystem::path run_dir_;
  Config config_;
  CheckpointState common_;  // what does not change from step to step
  int rank_count_;
  std::map<std::int64_t, Open> open_;  // by step
};

}  // namespace motley
