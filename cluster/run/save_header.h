// SaveHeader: what all checkpoints of one launch have in common, beside the shards of its ranks. It
// is also a file, by which the next launch commits a save that this one left complete but
// uncommitted. Format: docs/formats/checkpoint.md.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

struct SaveHeader {
  std::string launch;      // as launch_text
  CheckpointState common;  // without what changes per step
  Json config;
  Json model_config;                  // config.json; null: none
  std::vector<std::string> machines;  // by rank
  RemoteShards elsewhere;
};

[[nodiscard]] Result<void> write_save_header(const std::filesystem::path& run_dir,
                                             const SaveHeader& header);
// kCorrupt if it is absent or damaged.
[[nodiscard]] Result<SaveHeader> read_save_header(const std::filesystem::path& run_dir);

// Whether two reports of a save agree about what changes per step.
[[nodiscard]] bool has_same_progress(const CheckpointState& a, const CheckpointState& b);

// Commits the checkpoint of `progress` with the shards of all ranks, by rank. REQUIRES: the caller
// holds the folder.
[[nodiscard]] Result<std::filesystem::path> commit_save(const std::filesystem::path& run_dir,
                                                        const SaveHeader& header,
                                                        const CheckpointState& progress,
                                                        const std::map<int, Shard>& shards);

}  // namespace motley
