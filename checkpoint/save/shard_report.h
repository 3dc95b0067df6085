// ShardReport: what one rank's part of a save contains, with sizes and hashes. It goes to the
// launcher, which commits the checkpoint, and into a file beside the part: if the launcher is lost,
// the next one commits by these files. Format: docs/formats/checkpoint.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

struct ShardReport {
  CheckpointState state;  // only the fields that change per step: step, samples, tokens, updates
  Shard shard;
};

[[nodiscard]] Json shard_report_to_json(const ShardReport& report);
// kCorrupt if it is malformed.
[[nodiscard]] Result<ShardReport> shard_report_from_json(const Json& json,
                                                         const std::string& source);

// Writes the report into the partial folder, synced. Its presence states that the rank's part is
// complete, so it is the last file written.
[[nodiscard]] Result<void> write_shard_report(const SaveLocation& location,
                                              int rank_count,
                                              const ShardReport& report);

// The reports of this step in a partial folder, unordered; those that cannot be read are left out.
[[nodiscard]] std::vector<ShardReport> read_shard_reports(const SaveLocation& location);

// A report in a partial folder, with the launch that wrote it.
struct LeftReport {
  std::string launch;  // as launch_text
  ShardReport report;
};

// The reports in all partial folders of steps after the newest checkpoint, unordered.
[[nodiscard]] std::vector<LeftReport> left_reports(const std::filesystem::path& run_dir);

}  // namespace motley
