// A machine's part of a committed checkpoint, in its own run folder: the metadata files, and those
// tensor files that were written or copied there. The launcher has already committed; this only
// determines where the files are found.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/checkpoint_metadata.h"

namespace motley {

// Makes this launch's partial folder of the step the part. Idempotent. After a crash at any point
// the files are in the partial folder or in the part, and if the step was committed before, its old
// part or the new one is listed.
[[nodiscard]] Result<void> store_shards(const std::filesystem::path& run_dir,
                                        const std::string& launch,
                                        const CheckpointMetadata& step_metadata);

// The same with files that any launch has left of the step, if they have the manifest's sizes and
// hashes. `work` counts the bytes read. kInterrupted if stopped while reading: no file is lost, and
// another launch can adopt them.
[[nodiscard]] Result<void> adopt_shards(const std::filesystem::path& run_dir,
                                        const std::string& launch,
                                        const CheckpointMetadata& step_metadata,
                                        ProgressCounter* work,
                                        const std::stop_token& stop = {});

}  // namespace motley
